//! How are lists, maps, structs and pointers printed?

use super::printer::{BYTE, Printer};
use crate::{Failure, List, Map, Struct, Type, UintKind, Value};

/// Where every pointer points to: a template cannot do anything with a real address, and its output stays the same.
const ADDRESS: u64 = 0xc0_0001_2345;

impl Printer<'_> {
    /// Prints a list: the verb is for its items.
    pub(super) fn list(&mut self, list: &List, verb: char) -> Result<(), Failure> {
        let is_bytes = *list.item_type() == BYTE;
        if is_bytes && matches!(verb, 's' | 'q' | 'x' | 'X') {
            return self.bytes(list, verb);
        }
        if !self.spec.source {
            self.out.push("[")?;
            self.items(list.items(), verb)?;
            return self.out.push("]");
        }
        let type_ = Type::List(list.item_type());
        // Of an argument Go looks at the type itself, and calls it by its other name.
        self.out.push(if is_bytes && self.depth == 0 && verb == 'v' {
            "[]byte".to_owned()
        } else {
            type_.to_string()
        })?;
        if list.is_nil() {
            return self.out.push("(nil)");
        }
        self.out.push("{")?;
        self.items(list.items(), verb)?;
        self.out.push("}")
    }

    fn items(&mut self, items: &[Value], verb: char) -> Result<(), Failure> {
        for (at, item) in items.iter().enumerate() {
            self.separator(at)?;
            self.held(item, verb)?;
        }
        Ok(())
    }

    /// Prints a list of bytes as the string that they are.
    fn bytes(&mut self, list: &List, verb: char) -> Result<(), Failure> {
        let byte = |item: &Value| match item {
            Value::Uint(byte, _) => u8::try_from(*byte).unwrap_or(u8::MAX),
            _ => 0,
        };
        let bytes: Vec<u8> = list.items().iter().map(byte).collect();
        self.string(&Value::List(list.clone()), &bytes, verb)
    }

    /// Prints a map: the verb is for its keys and for its values.
    pub(super) fn map(&mut self, map: &Map, verb: char) -> Result<(), Failure> {
        if self.spec.source {
            self.out.push(Type::Map(map.item_type()).to_string())?;
            if map.is_nil() {
                return self.out.push("(nil)");
            }
        }
        self.out.push(if self.spec.source { "{" } else { "map[" })?;
        for (at, (key, item)) in map.entries().into_iter().enumerate() {
            self.separator(at)?;
            self.held(&Value::String(key), verb)?;
            self.out.push(":")?;
            self.held(&item, verb)?;
        }
        self.out.push(if self.spec.source { "}" } else { "]" })
    }

    /// Prints a struct: the verb is for the values of its fields.
    pub(super) fn struct_(&mut self, struct_: &Struct, verb: char) -> Result<(), Failure> {
        if self.spec.source {
            self.out.push(struct_.type_().name)?;
        }
        self.out.push("{")?;
        for (at, (field, value)) in struct_.fields().enumerate() {
            self.separator(at)?;
            if self.spec.source || self.spec.names {
                self.out.push(field.name)?;
                self.out.push(":")?;
            }
            self.held(value, verb)?;
        }
        self.out.push("}")
    }

    fn separator(&mut self, at: usize) -> Result<(), Failure> {
        match at {
            0 => Ok(()),
            _ => self.out.push(if self.spec.source { ", " } else { " " }),
        }
    }

    /// Prints where something is.
    pub(super) fn pointer(&mut self, value: &Value, verb: char) -> Result<(), Failure> {
        let is_nil = match value {
            Value::Pointer(pointer) => pointer.target().is_none(),
            Value::List(list) => list.is_nil(),
            Value::Map(map) => map.is_nil(),
            _ => return self.bad_verb(value, verb),
        };
        let address = if is_nil { 0 } else { ADDRESS };
        match verb {
            'v' if self.spec.source => {
                let type_ = value.type_().map(|type_| type_.to_string()).unwrap_or_default();
                self.out.push(format!("({type_})("))?;
                if is_nil {
                    self.out.push("nil")?;
                } else {
                    self.hexadecimal(address, true)?;
                }
                self.out.push(")")
            }
            'v' if is_nil => self.pad("<nil>"),
            'v' | 'p' => self.hexadecimal(address, !self.spec.sharp),
            'b' | 'o' | 'd' | 'x' | 'X' => self.integer(&Value::Uint(address, UintKind::Uint64), verb),
            _ => self.bad_verb(value, verb),
        }
    }
}
