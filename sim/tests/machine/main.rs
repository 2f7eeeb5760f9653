//! The machine below the core: hand-computed cycles, naive models, conservation laws.

mod cache_oracle;
mod configuration;
mod ddr_protocol;
mod ddr_published;
mod ddr_timing;
mod flat_timing;
mod laws;
mod timeline;
mod waiting;
