//! What is said to a request without permission: nothing, or to a person how to get in.

use crate::http::{Request, Response, Status};

const PAGE: &str = include_str!("../page/refused.html");
const STYLE: &str = include_str!("../page/review.css");

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It was sent to another name or port.
    OtherAddress,
    /// A page of another site sent it, or led here.
    OtherSite,
    /// Its token is wrong or absent.
    NoToken,
}

impl Refusal {
    /// A page without data for those who opened an address in a browser; empty for programs.
    pub fn response(self, request: &Request) -> Response {
        let status = match self {
            Self::OtherAddress => Status::MISDIRECTED,
            Self::OtherSite | Self::NoToken => Status::FORBIDDEN,
        };
        if !request.is_navigation() {
            return Response::empty(status);
        }
        let (title, text) = self.in_words();
        let page = PAGE.replace("TITLE", title).replace("TEXT", text).replace("STYLE", STYLE);
        Response::html(status, &page, "img-src data:; ").unwrap_or_else(Response::empty)
    }

    /// A title, and what to do as HTML.
    fn in_words(self) -> (&'static str, &'static str) {
        match self {
            Self::OtherAddress => (
                "The review has another address",
                "<p>It answers only at the address that <code>aleator review</code> printed, with \
                 the same port. From another machine, forward that port under its own number:</p>\
                 <p><code>ssh -L 8000:127.0.0.1:8000 MACHINE</code></p>",
            ),
            Self::OtherSite => (
                "Another page led you here",
                "<p>A review does not open by itself when another page, such as a terminal in the \
                 browser, leads to it. If you started this review:</p>\
                 <p><a href=\"\">Open the review</a></p>",
            ),
            Self::NoToken => (
                "This address does not open the review",
                "<p>The secret at its end (<code>?token=…</code>) is missing or no longer valid: it \
                 changes with every start of the program.</p>\
                 <p>Copy the whole address from the terminal in which <code>aleator review</code> \
                 runs. If it has ended, start it again with the same command: every decision that \
                 was shown as made is saved.</p>",
            ),
        }
    }
}
