//! The page by which `--open` leads a browser to the review.
//!
//! Command lines can be seen by all users of a machine, so the browser is given the path of this
//! page, which its owner alone can read. It holds a code that the server swaps for the address
//! once.

use std::io::Write;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::ReviewError;
use crate::http::{Response, Status};
use crate::token::Token;

/// Where the code is swapped.
pub(super) const PATH: &str = "/open";

/// A page that was not used yet; the file is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Opening {
    code: Token,
    file: NamedTempFile,
}

impl Opening {
    /// Writes the page into a directory, with a name that is cleaned up after a kill.
    pub fn write(dir: &Path, port: u16) -> Result<Self, ReviewError> {
        let failed = |source| ReviewError::OpeningPage { dir: dir.to_path_buf(), source };
        let code = Token::new()?;
        let dir = std::path::absolute(dir).map_err(failed)?;
        let mut name = tempfile::Builder::new();
        let mut file =
            name.prefix(".tmp-open-").suffix(".html").tempfile_in(dir).map_err(failed)?;
        check_private(&file).map_err(failed)?;
        let page = leading_to(&format!("http://127.0.0.1:{port}{PATH}?code={}", code.as_str()));
        file.write_all(page.as_bytes()).map_err(failed)?;
        Ok(Self { code, file })
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    pub fn has_code(&self, text: &str) -> bool {
        self.code.is(text)
    }
}

/// A page that leads to the review. The browser comes from a file, which is another site; from here
/// on it comes from ours.
pub(super) fn response(token: &Token) -> Result<Response, Status> {
    Response::html(
        Status::OK,
        &leading_to(&format!("/?token={}", token.as_str())),
        "img-src data:; ",
    )
}

fn leading_to(address: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0; url={address}\">\n\
         <title>Review – Aleator</title>\n<link rel=\"icon\" href=\"data:,\">\n\
         <p><a href=\"{address}\">Open the review</a></p>\n"
    )
}

/// Some file systems know no permissions.
#[cfg(unix)]
fn check_private(file: &NamedTempFile) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    match file.as_file().metadata()?.permissions().mode() & 0o077 {
        0 => Ok(()),
        _ => Err(std::io::Error::other("other users can read all files there")),
    }
}

#[cfg(not(unix))]
fn check_private(_: &NamedTempFile) -> std::io::Result<()> {
    Ok(())
}
