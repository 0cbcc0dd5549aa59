//! Classes that a user names.

use crate::Error;

/// A class by its name, or by its number where no class has that name.
pub(crate) fn class_of(name: &str, names: &[String]) -> Result<usize, Error> {
    let number = || name.parse().ok().filter(|class| *class < names.len());
    names.iter().position(|it| it == name).or_else(number).ok_or_else(|| {
        let word = name.to_lowercase();
        let like = names.iter().filter(|it| it.to_lowercase().contains(&word));
        let like: Vec<&str> = like.take(5).map(String::as_str).collect();
        let known = match like[..] {
            [] => {
                let first: Vec<&str> = names.iter().take(5).map(String::as_str).collect();
                format!(
                    "classes are {}{}",
                    first.join(", "),
                    if names.len() > 5 { ", …" } else { "" }
                )
            }
            _ => format!("did you mean {}?", like.join(" or ")),
        };
        Error::invalid(format!("no class is called {name:?}; {known}"))
    })
}
