//! The deserializer: it shows serde a document, or asks a type for its form.

use std::cell::Cell;
use std::sync::LazyLock;
use std::vec;

use serde::Deserialize;
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::fault::{Fault, one_of};
use crate::document::{Node, Origin, Table, Value};

/// What a type asks a deserializer for.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Value,
    Text,
    List,
    Map,
    Option,
    Struct { inline: bool, names: &'static [&'static str] },
    Enum { names: &'static [&'static str] },
}

/// The form of a part of a type. `steps` leads to the part: at each step the number of a field or
/// variant.
pub(crate) fn form_of<T: for<'de> Deserialize<'de>>(steps: &[usize]) -> Form {
    let form = Cell::new(Form::Value);
    // There is no value to decode; an error is how the question ends.
    let _ = T::deserialize(Tree::question(steps, &form));
    form.into_inner()
}

/// A value with its dotted key, arranged as serde expects it.
pub(super) struct Tree<'a> {
    pub key: String,
    pub node: &'a Node,
    pub content: Content<'a>,
}

pub(super) enum Content<'a> {
    /// The value of the node.
    Leaf,
    List(Vec<Tree<'a>>),
    Map(Vec<(&'a str, Tree<'a>)>),
    Variant(&'a str, Box<Tree<'a>>),
    /// No value: the form of the part that the steps lead to is wanted.
    Question(&'a [usize], &'a Cell<Form>),
}

/// Stands for a section that is not there.
pub(super) static ABSENT: LazyLock<Node> = LazyLock::new(|| Node {
    value: Value::Table(Table::new()),
    origin: Origin::Argument("the recipe".into()),
});

impl<'a> Tree<'a> {
    fn question(steps: &'a [usize], form: &'a Cell<Form>) -> Self {
        Tree { key: String::new(), node: &ABSENT, content: Content::Question(steps, form) }
    }

    /// Decodes the value; what is wrong with it is placed here.
    pub fn decode<'de, T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        let (key, node) = (self.key.clone(), self.node);
        seed.deserialize(self).map_err(|fault| fault.at(&key, node))
    }

    /// Ends a question about a type of this form, or leads it on to a part of the type. A value
    /// stays as it is.
    fn asked_for(self, form: Form) -> Result<Self, Fault> {
        let Content::Question(steps, wanted) = self.content else { return Ok(self) };
        let Some((&step, rest)) = steps.split_first() else {
            wanted.set(form);
            return Err(Fault::Custom("the type has told its form".to_string()));
        };
        let part = Self::question(rest, wanted);
        let content = match form {
            Form::Value | Form::Text => Content::Leaf,
            Form::Option => return Ok(part),
            Form::List => Content::List(vec![part]),
            Form::Map => Content::Map(vec![("", part)]),
            Form::Struct { names, .. } => Content::Map(vec![(names[step], part)]),
            Form::Enum { names } => Content::Variant(names[step], Box::new(part)),
        };
        Ok(Self { content, ..self })
    }

    fn visit_list<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.content {
            Content::List(items) => visitor.visit_seq(Items(items.into_iter())),
            _ => visit_value(&self.node.value, visitor),
        }
    }

    fn visit_table<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.content {
            Content::Map(entries) => visitor.visit_map(Entries(entries.into_iter(), None)),
            _ => visit_value(&self.node.value, visitor),
        }
    }
}

fn visit_value<'de, V: Visitor<'de>>(value: &Value, visitor: V) -> Result<V::Value, Fault> {
    match value {
        Value::String(text) => visitor.visit_str(text),
        Value::Integer(value) => match (u64::try_from(*value), i64::try_from(*value)) {
            (Ok(value), _) => visitor.visit_u64(value),
            (_, Ok(value)) => visitor.visit_i64(value),
            _ => visitor.visit_i128(*value),
        },
        Value::Float(value) => visitor.visit_f64(*value),
        Value::Boolean(value) => visitor.visit_bool(*value),
        // No key that comes here takes any of them.
        Value::Date(_) | Value::Array(_) | Value::Table(_) => visitor.visit_unit(),
    }
}

impl<'de> Deserializer<'de> for Tree<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.asked_for(Form::Value)?.visit_list(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.asked_for(Form::Text)?.visit_list(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.asked_for(Form::List)?.visit_list(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.asked_for(Form::Map)?.visit_table(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_some(self.asked_for(Form::Option)?)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.asked_for(Form::Struct { inline: name == "inline", names })?.visit_table(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let this = self.asked_for(Form::Enum { names })?;
        match (this.content, &this.node.value) {
            (Content::Variant(name, inner), _) => visitor.visit_enum(Choice(name, *inner)),
            (Content::Leaf, Value::String(word)) => {
                visitor.visit_enum(Choice(word, Tree { content: Content::Leaf, ..this }))
            }
            _ => Err(Fault::Type(one_of(names))),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str bytes byte_buf unit
        unit_struct tuple tuple_struct identifier ignored_any
    }
}

/// The items of a list.
struct Items<'a>(vec::IntoIter<Tree<'a>>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Fault> {
        self.0.next().map(|item| item.decode(seed)).transpose()
    }
}

/// The fields of a struct, and the value of the one that was named last.
struct Entries<'a>(vec::IntoIter<(&'a str, Tree<'a>)>, Option<Tree<'a>>);

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Fault> {
        let Some((name, value)) = self.0.next() else { return Ok(None) };
        self.1 = Some(value);
        seed.deserialize(word(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        self.1.take().expect("serde asks for the key first").decode(seed)
    }
}

/// A variant by its name, and what it holds.
struct Choice<'a>(&'a str, Tree<'a>);

impl<'de, 'a> EnumAccess<'de> for Choice<'a> {
    type Error = Fault;
    type Variant = Tree<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Tree<'a>), Fault> {
        Ok((seed.deserialize(word(self.0))?, self.1))
    }
}

impl<'de> VariantAccess<'de> for Tree<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        self.asked_for(Form::Value).map(|_| ())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        self.decode(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        names: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.deserialize_struct("", names, visitor)
    }
}

fn word(text: &str) -> StrDeserializer<'_, Fault> {
    text.into_deserializer()
}
