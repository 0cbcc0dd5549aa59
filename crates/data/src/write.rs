//! Labels as the bytes of files.

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

/// Version 1.0 of the format: magic, length of the header, a Python dictionary, the numbers.
fn npy(labels: &[i64]) -> Vec<u8> {
    let count = labels.len();
    let header = format!("{{'descr': '<i8', 'fortran_order': False, 'shape': ({count},), }}");
    // Magic, version and length are 10 bytes; with header and newline a multiple of 64.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 10 - 1;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded as u16 + 1).to_le_bytes());
    bytes.extend(format!("{header:<padded$}\n").bytes());
    bytes.extend(labels.iter().flat_map(|label| label.to_le_bytes()));
    bytes
}
