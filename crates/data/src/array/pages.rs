//! Pages of Parquet columns, checked before they are decoded.
//!
//! The decoders trust a page's own counts: a damaged page could make them index past its end, or
//! reserve memory for more numbers than the file could hold.

use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};

/// Repeated values take next to no bytes, so a page may hold many more values than bytes; one
/// with more than this is not a data set.
const VALUES_PER_BYTE: usize = 1024;
/// Any page may hold this many values.
const VALUES_OF_ANY_PAGE: usize = 1 << 24;

/// A page reader that refuses pages that contradict themselves.
pub(crate) struct CheckedPages {
    pages: Box<dyn PageReader>,
    has_dictionary: bool,
}

impl CheckedPages {
    pub(crate) fn new(pages: Box<dyn PageReader>) -> Self {
        Self { pages, has_dictionary: false }
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let page = self.pages.get_next_page()?;
        if let Some(page) = &page {
            check(page, self.has_dictionary).map_err(ParquetError::General)?;
            self.has_dictionary |= page.is_dictionary_page();
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

fn check(page: &Page, has_dictionary: bool) -> std::result::Result<(), String> {
    let (len, count) = (page.buffer().len(), page.num_values() as usize);
    let by_dictionary =
        matches!(page.encoding(), Encoding::PLAIN_DICTIONARY | Encoding::RLE_DICTIONARY);
    match page {
        // Every value of a dictionary is written out.
        Page::DictionaryPage { .. } if count > len => {
            Err(format!("a dictionary says that {len} bytes hold {count} values"))
        }
        Page::DictionaryPage { .. } => Ok(()),
        _ if count > VALUES_OF_ANY_PAGE.max(len.saturating_mul(VALUES_PER_BYTE)) => {
            Err(format!("a page says that {len} bytes hold {count} values"))
        }
        _ if by_dictionary && !has_dictionary => {
            Err("a page refers to a dictionary that is not there".into())
        }
        Page::DataPage { def_level_encoding, rep_level_encoding, .. } => {
            #[expect(deprecated, reason = "old files have it")]
            let known =
                |encoding: &Encoding| matches!(encoding, Encoding::RLE | Encoding::BIT_PACKED);
            if known(def_level_encoding) && known(rep_level_encoding) {
                Ok(())
            } else {
                Err("a page has levels of an encoding that is not for levels".into())
            }
        }
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            let levels = *def_levels_byte_len as usize + *rep_levels_byte_len as usize;
            if levels <= len {
                Ok(())
            } else {
                Err(format!("a page of {len} bytes says that {levels} of them are levels"))
            }
        }
    }
}
