//! Many names in little memory: one text and the end of each name.

/// Names by number. A million of them take their letters and 8 bytes each.
#[derive(Debug, Default)]
pub(crate) struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn push(&mut self, name: &str) {
        self.text += name;
        self.ends.push(self.text.len());
    }

    pub(crate) fn get(&self, index: usize) -> &str {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}

impl<S: AsRef<str>> FromIterator<S> for Names {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        let mut all = Self::default();
        names.into_iter().for_each(|name| all.push(name.as_ref()));
        all.text.shrink_to_fit();
        all.ends.shrink_to_fit();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_comes_back() {
        let names: Names = ["a", "", "ünï/b.png"].into_iter().collect();
        assert_eq!(names.len(), 3);
        assert_eq!([names.get(0), names.get(1), names.get(2)], ["a", "", "ünï/b.png"]);
    }
}
