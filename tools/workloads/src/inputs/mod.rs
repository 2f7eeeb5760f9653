//! Inputs of real programs: the same bytes for the same size and seed.

pub mod archive;
pub mod c_source;
pub mod redis_log;
pub mod scene;
pub mod scripts;
pub mod sql;
pub mod text;
pub mod video;

/// An input as the command line knows it.
#[derive(Clone, Copy)]
pub struct Input {
    /// Its name there.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Makes about so many bytes of it, from a seed.
    pub make: fn(u64, u64) -> Vec<u8>,
}

/// All of them.
pub const INPUTS: [Input; 11] = [
    Input { name: "text", about: "words by Zipf's law, in lines", make: text::make },
    Input { name: "archive", about: "a tar of text, C and binary files", make: archive::make },
    Input { name: "c-source", about: "C without headers, for a compiler", make: c_source::make },
    Input { name: "sql", about: "a script for SQLite: tables, indices, joins", make: sql::make },
    Input {
        name: "sql-updates",
        about: "a script for SQLite: payments between random accounts; size is the database's",
        make: sql::updates,
    },
    Input {
        name: "perl",
        about: "a script that counts words; size is ignored",
        make: scripts::perl,
    },
    Input {
        name: "python",
        about: "a script with dictionaries, objects, strings; size is what it works on",
        make: scripts::python,
    },
    Input { name: "video", about: "moving shapes with noise, YUV4MPEG2", make: video::make },
    Input {
        name: "redis-log",
        about: "an append-only file of commands that ends with a shutdown",
        make: redis_log::make,
    },
    Input {
        name: "redis-sets",
        about: "the same with SETs of random keys only",
        make: redis_log::sets,
    },
    Input { name: "scene", about: "spheres that mirror, for POV-Ray", make: scene::make },
];

/// The input of that name.
#[must_use]
pub fn of_name(name: &str) -> Option<&'static Input> {
    INPUTS.iter().find(|input| input.name == name)
}
