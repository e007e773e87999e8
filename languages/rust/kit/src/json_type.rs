//! JSON types of the values of a spec.

use serde_json::Value;

/// The JSON type of a key's value. The harness checks the value itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    String,
    Integer,
    Boolean,
    Strings,
    Integers,
}

impl Type {
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Type::String => "a string",
            Type::Integer => "an integer",
            Type::Boolean => "true or false",
            Type::Strings => "a list of strings",
            Type::Integers => "a list of integers",
        }
    }

    pub(crate) fn is_of(self, value: &Value) -> bool {
        let each =
            |matches: fn(&Value) -> bool| value.as_array().is_some_and(|a| a.iter().all(matches));
        match self {
            Type::String => value.is_string(),
            Type::Integer => value.is_i64(),
            Type::Boolean => value.is_boolean(),
            Type::Strings => each(Value::is_string),
            Type::Integers => each(Value::is_i64),
        }
    }
}
