//! A sparse matrix in rows (CSR) times a vector, again and again: the power method. Values and
//! columns stream; the vector is gathered from wherever the columns say.

use super::Work;
use crate::checksum::Checksum;
use crate::random::Random;

/// Elements of a row that are not 0, on average.
const ROW: usize = 16;
/// Bytes of a row: its elements, its start, its elements of two vectors.
const ROW_BYTES: u64 = ROW as u64 * 12 + 4 + 16;

/// A square matrix.
#[derive(Clone, Debug)]
pub struct Sparse {
    /// Where each row begins in the two others, and where the last one ends.
    pub starts: Vec<u32>,
    /// Columns of the elements.
    pub columns: Vec<u32>,
    /// The elements.
    pub values: Vec<f64>,
}

impl Sparse {
    /// A random matrix: rows of 1 to 31 elements; half of the columns are near the diagonal.
    #[must_use]
    pub fn new(rows: usize, seed: u64) -> Self {
        let rows = rows.max(1);
        let mut random = Random::new(seed);
        let mut matrix = Sparse { starts: vec![0], columns: Vec::new(), values: Vec::new() };
        for row in 0..rows {
            for _ in 0..=random.index(2 * ROW - 1) {
                let near = (row + random.index(64)) % rows;
                let column = if random.below(2) == 0 { near } else { random.index(rows) };
                matrix.columns.push(column as u32);
                matrix.values.push(random.unit());
            }
            matrix.starts.push(matrix.columns.len() as u32);
        }
        matrix
    }

    /// Rows, which are as many as columns.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    /// `into` = this times `vector`.
    pub fn multiply(&self, vector: &[f64], into: &mut [f64]) {
        for (row, sum) in into.iter_mut().enumerate() {
            let elements = self.starts[row] as usize..self.starts[row + 1] as usize;
            let columns = &self.columns[elements.clone()];
            let products = columns.iter().zip(&self.values[elements]);
            *sum = products.map(|(column, value)| value * vector[*column as usize]).sum();
        }
    }
}

/// So many products, each of the matrix with the last one, scaled to a largest element of 1.
pub fn run(work: &Work) -> u64 {
    let matrix = Sparse::new((work.size_bytes / ROW_BYTES) as usize, work.seed);
    let mut vector = vec![1.0; matrix.rows()];
    let mut product = vector.clone();
    for _ in 0..work.rounds {
        matrix.multiply(&vector, &mut product);
        let largest = product.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        vector.iter_mut().zip(&product).for_each(|(old, new)| *old = new / largest);
    }
    let mut sum = Checksum::default();
    sum.add_all(&vector);
    sum.value()
}
