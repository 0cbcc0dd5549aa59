//! Labels and tables as files.

mod table;

pub use table::{Column, TableFormat, TableWriter};

use crate::sources::NoisyLabels;

impl NoisyLabels {
    /// The given labels as the bytes of a `.npy` file, `[N]` of 64-bit integers: the numbers that
    /// name the classes, else the positions of the classes.
    pub fn to_npy(&self) -> Vec<u8> {
        npy(&self.numbers(&self.labels))
    }

    /// The true labels as the bytes of a `.npy` file.
    pub fn clean_to_npy(&self) -> Vec<u8> {
        npy(&self.numbers(&self.clean_labels))
    }

    fn numbers(&self, labels: &[u32]) -> Vec<i64> {
        let named: Option<Vec<i64>> =
            self.class_names.iter().map(|name| name.parse().ok()).collect();
        let number = |label: &u32| match &named {
            Some(numbers) => numbers[*label as usize],
            None => i64::from(*label),
        };
        labels.iter().map(number).collect()
    }

    /// A CSV file with the columns `id`, `label`, `clean_label`; labels by the classes' names.
    pub fn to_csv(&self) -> Vec<u8> {
        let mut writer = csv::Writer::from_writer(vec![]);
        let name = |label: u32| self.class_names[label as usize].as_str();
        let rows = self.labels.iter().zip(&self.clean_labels).enumerate();
        let written = writer.write_record(["id", "label", "clean_label"]).and_then(|()| {
            rows.into_iter().try_for_each(|(index, (label, clean))| {
                writer.write_record([&self.ids.name(index), name(*label), name(*clean)])
            })
        });
        written.expect("memory can be written to, and all rows have three fields");
        writer.into_inner().expect("memory can be written to")
    }
}

fn npy(labels: &[i64]) -> Vec<u8> {
    let mut bytes = npy_header("<i8", &[labels.len()]);
    bytes.extend(labels.iter().flat_map(|label| label.to_le_bytes()));
    bytes
}

/// The beginning of a `.npy` file, which numbers of the type `descr` follow in C order.
///
/// ```
/// let header = aleator_data::write::npy_header("<f4", &[3, 2]);
/// assert_eq!(header.len() % 64, 0);
/// assert!(String::from_utf8_lossy(&header).contains("'shape': (3, 2,)"));
/// ```
pub fn npy_header(descr: &str, shape: &[usize]) -> Vec<u8> {
    let sides: Vec<String> = shape.iter().map(|side| format!("{side},")).collect();
    let shape = sides.join(" ");
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // Version 1.0: magic, version and length are 10 bytes; with header and newline a multiple
    // of 64.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10 - 1;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded as u16 + 1).to_le_bytes());
    bytes.extend(format!("{header:<padded$}\n").bytes());
    bytes
}
