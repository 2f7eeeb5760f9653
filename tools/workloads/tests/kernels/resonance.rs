//! ART 2 as the paper writes it, with a list for each letter and whole rows of weights.

use casemate_workloads::kernels::resonance::{CATEGORIES, Images, Resonance};

struct Plain {
    /// By category: from neurons to it.
    up: Vec<Vec<f64>>,
    /// By category: from it to neurons.
    down: Vec<Vec<f64>>,
    u: Vec<f64>,
    p: Vec<f64>,
    q: Vec<f64>,
}

fn norm(numbers: &[f64]) -> f64 {
    numbers.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn scaled(numbers: &[f64]) -> Vec<f64> {
    let norm = norm(numbers).max(1e-300);
    numbers.iter().map(|x| x / norm).collect()
}

impl Plain {
    fn of(network: &Resonance) -> Self {
        let category = |j: usize| network.weights().map(|(up, down)| (up[j], down[j])).unzip();
        let (up, down): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (0..CATEGORIES).map(category).unzip();
        let silent = vec![0.0; up[0].len()];
        Plain { u: silent.clone(), p: silent.clone(), q: silent, up, down }
    }

    fn settle(&mut self, image: &[f64], winner: Option<usize>, times: usize) {
        let loud = 1.0 / (image.len() as f64).sqrt();
        let f = |x: f64| if x >= loud { x } else { 0.0 };
        for _ in 0..times {
            let w: Vec<f64> = image.iter().zip(&self.u).map(|(i, u)| i + 10.0 * u).collect();
            let v: Vec<f64> =
                scaled(&w).iter().zip(&self.q).map(|(x, q)| f(*x) + 10.0 * f(*q)).collect();
            self.u = scaled(&v);
            self.p = self.u.clone();
            if let Some(winner) = winner {
                self.p.iter_mut().zip(&self.down[winner]).for_each(|(p, z)| *p += 0.9 * z);
            }
            self.q = scaled(&self.p);
        }
    }

    fn see(&mut self, image: &[f64]) {
        let silent = vec![0.0; image.len()];
        (self.u, self.p, self.q) = (silent.clone(), silent.clone(), silent);
        self.settle(image, None, 3);
    }

    fn show(&mut self, image: &[f64]) -> Option<usize> {
        self.see(image);
        let fit = |up: &Vec<f64>| self.p.iter().zip(up).map(|(p, z)| p * z).sum::<f64>();
        let fits: Vec<f64> = self.up.iter().map(fit).collect();
        let mut order: Vec<usize> = (0..CATEGORIES).collect();
        order.sort_by(|a, b| fits[*b].total_cmp(&fits[*a]));
        for winner in order {
            self.see(image);
            self.settle(image, Some(winner), 1);
            let whole = norm(&self.u) + 0.1 * norm(&self.p);
            let r: Vec<f64> =
                self.u.iter().zip(&self.p).map(|(u, p)| (u + 0.1 * p) / whole).collect();
            if norm(&r) < 0.98 {
                continue;
            }
            for _ in 0..3 {
                self.settle(image, Some(winner), 3);
                for weights in [&mut self.up[winner], &mut self.down[winner]] {
                    weights.iter_mut().zip(&self.p).for_each(|(z, p)| *z = 0.6 * *z + 0.4 * p);
                }
            }
            return Some(winner);
        }
        None
    }
}

#[test]
fn it_is_the_plain_network_and_tells_patterns_apart() {
    let mut network = Resonance::new(300, 3);
    let mut plain = Plain::of(&network);
    let mut images = Images::new(300, 3);
    let mut learnt_by = std::collections::BTreeMap::new();
    for shown in 0..40 {
        let (pattern, image) = images.draw();
        let winner = network.show(&image);
        assert_eq!(winner, plain.show(&image), "image {shown}");
        let same = *learnt_by.entry(pattern).or_insert(winner);
        assert_eq!(winner, same, "image {shown} of pattern {pattern}");
        for (neuron, (up, down)) in network.weights().enumerate() {
            for category in 0..CATEGORIES {
                assert!((up[category] - plain.up[category][neuron]).abs() < 1e-9);
                assert!((down[category] - plain.down[category][neuron]).abs() < 1e-9);
            }
        }
    }
    let categories: std::collections::BTreeSet<_> = learnt_by.values().flatten().collect();
    assert_eq!((learnt_by.len(), categories.len()), (5, 5), "{learnt_by:?}");
}

/// Neurons are 64 bytes, and rows are allocated one by one: 88 bytes, which glibc's allocator
/// places 96 apart.
#[test]
fn rows_lie_96_bytes_apart() {
    let network = Resonance::new(1000, 1);
    let rows: Vec<usize> = network.weights().map(|(up, _)| up.as_ptr() as usize).collect();
    let apart = rows.windows(2).filter(|pair| pair[1].wrapping_sub(pair[0]) == 96).count();
    assert!(apart > 900, "{apart} of 999");
}
