//! Configurations: one TOML file, whose keys are all in one table.
//!
//! A preset says every key; a file goes over it, and single assignments go over both. What comes
//! out is written with every result, and can be read as a file again.
//!
//! In reading order:
//!
//! - [`value`]: what a key takes;
//! - [`keys`]: all keys;
//! - [`layer`]: what a preset, a file or an assignment says;
//! - [`presets`]: the papers' machines;
//! - [`resolved`]: all keys with their values;
//! - [`machine`], [`memory`], [`protection`]: what they describe;
//! - [`simpoints`]: windows that SimPoint chose, with their weights;
//! - [`error`]: what is said when a name or a value is wrong.

pub mod error;
pub mod keys;
pub mod layer;
pub mod machine;
pub mod memory;
pub mod presets;
pub mod protection;
pub mod resolved;
pub mod simpoints;
pub mod value;

pub use error::ConfigurationError;
pub use layer::Layer;
pub use presets::Preset;
pub use resolved::Resolved;
