//! A scene for POV-Ray: spheres that mirror each other, thrown over a chequered plain.

use std::fmt::Write;

use crate::random::Random;

/// Bytes of a sphere's line.
const SPHERE_BYTES: u64 = 100;
/// The side of the plain that spheres lie on.
const SIDE: f64 = 40.0;

/// About so many bytes.
#[must_use]
pub fn make(size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut scene = "#version 3.7;
global_settings { assumed_gamma 1.0 max_trace_level 5 }
camera { location <0, 9, -26> look_at <0, 1, 0> }
light_source { <20, 30, -20> rgb 0.8 }
light_source { <-30, 25, -10> rgb 0.4 }
plane { y, 0 pigment { checker rgb 0.9, rgb 0.4 } finish { reflection 0.2 } }
#declare Mirror = finish { phong 0.6 reflection 0.3 };
"
    .to_owned();
    let spheres = (size_bytes / SPHERE_BYTES).max(1);
    // As many as there are, they cover the same part of the plain.
    let radius = 0.4 * SIDE / (spheres as f64).sqrt();
    for _ in 0..spheres {
        let [x, height, z, size, red, green, blue] = [0.0; 7].map(|_: f64| random.unit());
        let (x, z) = ((x - 0.5) * SIDE, (z - 0.5) * SIDE);
        let (y, size) = (radius + 3.0 * height * height, radius * (0.5 + size));
        // Writing to a string cannot fail.
        let _ = writeln!(
            scene,
            "sphere {{ <{x:.3}, {y:.3}, {z:.3}>, {size:.3} \
             pigment {{ rgb <{red:.2}, {green:.2}, {blue:.2}> }} finish {{ Mirror }} }}"
        );
    }
    scene.into_bytes()
}
