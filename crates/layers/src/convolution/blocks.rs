//! Divides a batch of images into blocks of pixels; the division depends only on sizes.

use std::ops::Range;

/// Some rows of one image, or all rows of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub images: Range<usize>,
    pub rows: Range<usize>,
}

/// How a grid of pixels is divided into blocks of about the same number of positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    grid: [usize; 2],
    /// Images of a block; 1 if a block has fewer than all rows.
    images: usize,
    pub rows: usize,
}

impl Cut {
    /// Blocks of at most `positions` pixels (or one row, if that is longer) for `batch` images.
    pub fn new(grid: [usize; 2], positions: usize, batch: usize) -> Self {
        let [height, width] = grid;
        let images = (positions / (height * width)).max(1);
        let images = batch.div_ceil(batch.div_ceil(images).max(1)).max(1);
        let bands = height.div_ceil((positions / width).max(1));
        Self { grid, images, rows: height.div_ceil(bands) }
    }

    pub fn blocks(&self, images: Range<usize>) -> Vec<Block> {
        let height = self.grid[0];
        let starts = images.clone().step_by(self.images);
        let block = |start: usize, row: usize| Block {
            images: start..images.end.min(start + self.images),
            rows: row..height.min(row + self.rows),
        };
        let rows = (0..height).step_by(self.rows);
        starts.flat_map(|start| rows.clone().map(move |row| block(start, row))).collect()
    }

    /// The number of positions of the largest block.
    pub fn positions(&self) -> usize {
        self.images * self.rows * self.grid[1]
    }
}

impl Block {
    /// The numbers of images and rows.
    pub fn size(&self) -> [usize; 2] {
        [self.images.len(), self.rows.len()]
    }

    /// `place(image within the block, row) + column · step` of every pixel of the block.
    pub fn places(
        &self,
        width: usize,
        step: usize,
        place: impl Fn(usize, usize) -> usize,
    ) -> Vec<usize> {
        let mut places = Vec::with_capacity(self.images.len() * self.rows.len() * width);
        for image in 0..self.images.len() {
            for row in self.rows.clone() {
                let first = place(image, row);
                places.extend((0..width).map(|column| first + column * step));
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_pixel_once_and_stay_small() {
        for (grid, batch, positions) in [([32, 32], 3, 256), ([7, 7], 13, 256), ([5, 300], 2, 64)] {
            let cut = Cut::new(grid, positions, batch);
            let mut seen = vec![0; batch * grid[0] * grid[1]];
            for block in cut.blocks(0..batch) {
                let place = |image, row| ((block.images.start + image) * grid[0] + row) * grid[1];
                let pixels = block.places(grid[1], 1, place);
                assert!(pixels.len() <= cut.positions());
                assert!(pixels.len() <= positions.max(grid[1]));
                pixels.into_iter().for_each(|pixel| seen[pixel] += 1);
            }
            assert!(seen.iter().all(|count| *count == 1));
        }
    }
}
