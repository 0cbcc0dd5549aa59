//! `move_data`: a run, a group or an audit whose data are in another place now.

use std::path::Path;

use aleator_run::recipe::{Data, Recipe};
use aleator_run::{GroupFile, RunDir, lock_folder, write_file};
use aleator_train::group;
use aleator_train::{run_data, same_data};

use crate::Error;

/// Writes the new place of the data into the recipes of a run, a group of runs or an audit, so that
/// [`resume`](crate::resume) and [`evaluate`](crate::evaluate) find them.
///
/// `place` is where the training inputs are now, or the folder that holds all files.
///
/// # Errors
/// When `place` lacks a file that a recipe names, or the data have changed; then nothing is written.
pub fn move_data(dir: &Path, place: &Path) -> Result<(), Error> {
    if !place.exists() {
        return Err(Error::invalid(format!("{}: no such file or directory", place.display())));
    }
    let place = std::path::absolute(place).map_err(Error::io(place))?;
    let group = group::open(dir)?;
    let mut checked: Vec<(Data, String)> = vec![];
    let mut recipes = vec![];
    for member in &group.members {
        let given = moved(&member.recipe, &place)?;
        let path = member.dir(dir);
        if !path.join(RunDir::INFO).is_file() {
            recipes.push((given, None));
            continue;
        }
        let run = RunDir::open(&path)?;
        let own = moved(&run.recipe()?.recipe, &place)?;
        let fingerprint = run.info().fingerprint.clone();
        let known =
            |(data, other): &(Data, String)| data.train == own.data.train && *other == fingerprint;
        if !checked.iter().any(known) {
            same_data(&run, &run_data(&run, &own, None)?)?;
            checked.push((own.data.clone(), fingerprint));
        }
        recipes.push((given, Some((run, own))));
    }
    let _lock = lock_folder(dir)?;
    for (run, own) in recipes.iter().filter_map(|(_, run)| run.as_ref()) {
        write_file(&run.recipe_path(), own.to_toml().as_bytes())?;
    }
    if dir.join(GroupFile::NAME).is_file() {
        let mut file = GroupFile::load(dir)?;
        for (member, (given, _)) in file.members.iter_mut().zip(&recipes) {
            member.recipe = given.to_toml();
        }
        file.save(dir)?;
    }
    Ok(())
}

/// The recipe with its data in the new place.
fn moved(recipe: &Recipe, place: &Path) -> Result<Recipe, Error> {
    let Some(data) = recipe.data.moved_to(place)? else {
        return Err(Error::invalid(match recipe.data.train.inputs.path() {
            Some(inputs) => format!(
                "{}: does not hold all files that the recipe names; it should be where {} is now, \
                 or the folder with all files, laid out as before",
                place.display(),
                inputs.display()
            ),
            None => "the data of this run are not in files, so they have no place".to_string(),
        }));
    };
    Ok(Recipe { data, ..recipe.clone() })
}
