//! Papers, reproduced, as something to read: Markdown, a page, tables, lines for a terminal.

pub mod claims;
pub mod html;
pub mod markdown;
#[cfg(test)]
pub(crate) mod samples;
pub mod table;

pub use claims::{claims_csv, claims_text};
pub use html::html;
pub use markdown::markdown;
pub use table::csv;
