//! Damage to the values of a document that leaves it a document.

use serde_json::{Map, Value, json};

use super::Random;
use super::bytes::EXTREMES;

/// Changes one value somewhere in a document.
pub fn damage(document: &mut Value, random: &mut Random) {
    let mut places = vec![];
    list(document, String::new(), &mut places);
    let place = random.pick(&places);
    let other = document.pointer(&random.pick(&places)).cloned().unwrap_or_default();
    let value = document.pointer_mut(&place).expect("a place of the document");
    match random.below(8) {
        0..3 => *value = extreme(random),
        3 => *value = other,
        _ => match value {
            Value::Array(values) => damage_array(values, random),
            Value::Object(fields) => damage_object(fields, random),
            Value::Number(number) => {
                let number = number.as_f64().unwrap_or_default();
                *value = json!(random.pick(&[number + 1.0, number - 1.0, -number, 1e6 * number]));
            }
            Value::String(text) => damage_text(text, random),
            Value::Bool(_) | Value::Null => *value = extreme(random),
        },
    }
}

/// Every value by its pointer.
fn list(value: &Value, at: String, places: &mut Vec<String>) {
    match value {
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                list(value, format!("{at}/{index}"), places);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                list(value, format!("{at}/{key}"), places);
            }
        }
        _ => {}
    }
    places.push(at);
}

fn damage_array(values: &mut Vec<Value>, random: &mut Random) {
    let at = random.below(values.len());
    match random.below(6) {
        0 if !values.is_empty() => drop(values.remove(at)),
        1 if !values.is_empty() => values.insert(at, values[at].clone()),
        2 => values.clear(),
        3 => values.reverse(),
        4 if values.len() < 1000 => *values = vec![values.clone(); 64].concat(),
        _ => values.push(extreme(random)),
    }
}

fn damage_object(fields: &mut Map<String, Value>, random: &mut Random) {
    let keys: Vec<String> = fields.keys().cloned().collect();
    if keys.is_empty() {
        fields.insert("key".to_string(), extreme(random));
        return;
    }
    let (one, other) = (random.pick(&keys), random.pick(&keys));
    match random.below(4) {
        0 => drop(fields.remove(&one)),
        1 => {
            let value = fields.remove(&one).unwrap_or_default();
            fields.insert(format!("{one}_"), value);
        }
        2 => drop(fields.insert(one, fields[&other].clone())),
        _ => drop(fields.insert("unknown".to_string(), extreme(random))),
    }
}

/// Words that are too long, empty, or mean something elsewhere.
pub fn damage_text(text: &mut String, random: &mut Random) {
    match random.below(8) {
        0 => text.clear(),
        1 => *text = text.repeat(2),
        2 => *text = "x".repeat(5000),
        3 => drop(text.pop()),
        4 => text.push_str(random.pick(&["\u{0}", "\n", "\"", ",", "\u{202e}", "é", "\u{1b}[2J"])),
        5 => *text = "../".to_string() + text,
        6 => *text = text.to_uppercase(),
        _ => {
            *text = random
                .pick(&["NaN", "Infinity", "-1", "none", ".", "a,b", "é\u{1f600}"])
                .to_string()
        }
    }
}

fn extreme(random: &mut Random) -> Value {
    match random.below(12) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2..5 => json!(random.pick(&EXTREMES)),
        5 => json!(-(random.pick(&EXTREMES).cast_signed().saturating_abs())),
        6 => json!(random.pick(&[1e308, 5e-324, -0.0, 0.5, 1e-9, -1e300, 9.007199254740993e15])),
        7 => json!([]),
        8 => json!({}),
        9 => (0..100).fold(Value::Null, |inner, _| json!([inner])),
        _ => {
            let mut text = "word".to_string();
            damage_text(&mut text, random);
            Value::String(text)
        }
    }
}
