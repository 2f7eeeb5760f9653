//! Flags of `casemate storage`.

use clap::Args;

use crate::output::Json;
use crate::size::Size;

/// `casemate storage`.
#[derive(Debug, Args)]
pub struct StorageArgs {
    /// What faults of `run` cost in a memory of this size, instead of the schemes: levels, lines,
    /// MACs and bytes, cold and warm
    #[arg(long, value_name = "SIZE", value_delimiter = ',')]
    pub pages: Vec<Size>,
    /// Trusted memory for verified lines then, as `run --node-cache`
    #[arg(long, value_name = "SIZE", default_value = "256K", requires = "pages")]
    pub node_cache: Size,
    /// The report.
    #[command(flatten)]
    pub json: Json,
}
