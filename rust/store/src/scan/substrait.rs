//! Reads a predicate in Substrait's form, in which Arrow libraries write an expression.
//!
//! Source: `proto/substrait/extended_expression.proto` and `algebra.proto` of Substrait. Only the fields that a condition
//! on columns uses are declared; prost skips the others, and limits the depth.
use super::predicate::Predicate;
use super::push_down::Literal;
use crate::{Error, Result};
use prost::{Message, Oneof};
use std::collections::HashMap;

/// Returns the predicate of an `ExtendedExpression`. Parts that a scan does not understand are [`Predicate::Other`].
///
/// # Errors
/// [`Error::Invalid`]: the bytes are no such message, or it does not hold exactly one expression.
pub fn parse_predicate(bytes: &[u8]) -> Result<Predicate> {
    let invalid = |got: String| Error::invalid("predicate", "an ExtendedExpression of Substrait", got);
    let message = ExtendedExpression::decode(bytes).map_err(|error| invalid(error.to_string()))?;
    let [ExpressionReference { expression: Some(expression) }] = &message.referred_expr[..] else {
        return Err(invalid(format!("{} expressions", message.referred_expr.len())));
    };
    let functions = message.extensions.iter().filter_map(|extension| extension.function.as_ref());
    let names = message.base_schema.map(|schema| schema.names).unwrap_or_default();
    let reader = Reader { functions: functions.map(|f| (f.anchor, &*f.name)).collect(), columns: &names };
    Ok(reader.predicate(expression))
}

struct Reader<'a> {
    /// Names of functions by the number that the expression uses.
    functions: HashMap<u32, &'a str>,
    columns: &'a [String],
}

impl Reader<'_> {
    fn predicate(&self, expression: &Expression) -> Predicate {
        match &expression.kind {
            Some(ExpressionKind::Function(function)) => self.function(function),
            Some(ExpressionKind::OneOf(list)) => self.one_of(list).unwrap_or(Predicate::Other),
            Some(ExpressionKind::IfThen(branches)) => self.if_then(branches),
            _ => Predicate::Other,
        }
    }

    fn function(&self, function: &ScalarFunction) -> Predicate {
        let arguments: Vec<&Expression> =
            function.arguments.iter().filter_map(|given| given.value.as_deref()).collect();
        let parts = || arguments.iter().map(|part| self.predicate(part)).collect();
        match (self.functions.get(&function.reference).copied().unwrap_or_default(), &arguments[..]) {
            ("and", _) => Predicate::All(parts()),
            ("or", _) => Predicate::Any(parts()),
            ("is_null", [of]) => self.null_check("null", of),
            ("is_not_null", [of]) => self.null_check("not null", of),
            (name, [left, right]) => self.comparison(name, left, right).unwrap_or(Predicate::Other),
            _ => Predicate::Other,
        }
    }

    fn null_check(&self, kind: &str, of: &Expression) -> Predicate {
        self.column(of).map_or(Predicate::Other, |column| Predicate::filter(kind, column, Vec::new()))
    }

    fn comparison(&self, name: &str, left: &Expression, right: &Expression) -> Option<Predicate> {
        let (kind, flipped) = match name {
            "equal" => ("=", "="),
            "lt" => ("<", ">"),
            "lte" => ("<=", ">="),
            "gt" => (">", "<"),
            "gte" => (">=", "<="),
            _ => return None,
        };
        Some(match (self.column(left), self.column(right)) {
            (Some(column), None) => Predicate::filter(kind, column, vec![literal(right)?]),
            (None, Some(column)) => Predicate::filter(flipped, column, vec![literal(left)?]),
            _ => return None,
        })
    }

    fn one_of(&self, list: &SingularOrList) -> Option<Predicate> {
        let column = self.column(list.value.as_deref()?)?;
        let values: Vec<Option<Literal>> = list.options.iter().map(literal).collect::<Option<_>>()?;
        // pyarrow's `is_in` finds null among values that hold null
        (!values.contains(&None)).then(|| Predicate::filter("in", column, values))
    }

    /// Reads `if condition then predicate else null`, as DuckDB writes IN.
    fn if_then(&self, branches: &IfThen) -> Predicate {
        let is_null = |other: &Expression| matches!(literal(other), Some(None));
        match (&branches.ifs[..], &branches.otherwise) {
            ([IfClause { condition: Some(condition), then: Some(then) }], Some(other)) if is_null(other) => {
                Predicate::All(vec![self.predicate(condition), self.predicate(then)])
            }
            _ => Predicate::Other,
        }
    }

    /// Returns the name of a column. `None` for a part of a column, and for any other expression.
    fn column(&self, expression: &Expression) -> Option<&str> {
        let Some(ExpressionKind::Selection(FieldReference { direct: Some(segment), root: Some(_) })) = &expression.kind
        else {
            return None;
        };
        let field = segment.struct_field.as_deref().filter(|field| field.child.is_none())?;
        self.columns.get(usize::try_from(field.field).ok()?).map(String::as_str)
    }
}

/// Returns the value of a literal, in which null is `None`. `None` if the expression is no literal.
fn literal(expression: &Expression) -> Option<Option<Literal>> {
    let Some(ExpressionKind::Literal(value)) = &expression.kind else { return None };
    Some(match value.kind.as_ref() {
        Some(LiteralKind::Null(_)) => None,
        Some(LiteralKind::I8(n) | LiteralKind::I16(n) | LiteralKind::I32(n)) => Some(Literal::Number(i64::from(*n))),
        Some(LiteralKind::I64(n)) => Some(Literal::Number(*n)),
        Some(LiteralKind::String(text)) => Some(Literal::Text(text.clone())),
        Some(LiteralKind::TimestampTz(micros)) => Some(Literal::Micros(*micros)),
        None => Some(Literal::Other),
    })
}

#[derive(Clone, PartialEq, Message)]
struct ExtendedExpression {
    #[prost(message, repeated, tag = "2")]
    extensions: Vec<ExtensionDeclaration>,
    #[prost(message, repeated, tag = "3")]
    referred_expr: Vec<ExpressionReference>,
    #[prost(message, optional, tag = "4")]
    base_schema: Option<NamedStruct>,
}

#[derive(Clone, PartialEq, Message)]
struct ExtensionDeclaration {
    #[prost(message, optional, tag = "3")]
    function: Option<ExtensionFunction>,
}

#[derive(Clone, PartialEq, Message)]
struct ExtensionFunction {
    #[prost(uint32, tag = "2")]
    anchor: u32,
    #[prost(string, tag = "3")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct ExpressionReference {
    #[prost(message, optional, tag = "1")]
    expression: Option<Expression>,
}

#[derive(Clone, PartialEq, Message)]
struct NamedStruct {
    #[prost(string, repeated, tag = "1")]
    names: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Expression {
    #[prost(oneof = "ExpressionKind", tags = "1, 2, 3, 6, 8")]
    kind: Option<ExpressionKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum ExpressionKind {
    #[prost(message, tag = "1")]
    Literal(LiteralValue),
    #[prost(message, tag = "2")]
    Selection(FieldReference),
    #[prost(message, tag = "3")]
    Function(ScalarFunction),
    #[prost(message, tag = "6")]
    IfThen(IfThen),
    #[prost(message, tag = "8")]
    OneOf(SingularOrList),
}

#[derive(Clone, PartialEq, Message)]
struct LiteralValue {
    #[prost(oneof = "LiteralKind", tags = "2, 3, 5, 7, 12, 27, 29")]
    kind: Option<LiteralKind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum LiteralKind {
    #[prost(int32, tag = "2")]
    I8(i32),
    #[prost(int32, tag = "3")]
    I16(i32),
    #[prost(int32, tag = "5")]
    I32(i32),
    #[prost(int64, tag = "7")]
    I64(i64),
    #[prost(string, tag = "12")]
    String(String),
    #[prost(int64, tag = "27")]
    TimestampTz(i64),
    #[prost(message, tag = "29")]
    Null(AnyType),
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct AnyType {}

#[derive(Clone, PartialEq, Message)]
struct FieldReference {
    #[prost(message, optional, tag = "1")]
    direct: Option<ReferenceSegment>,
    /// Present if the column is one of the rows themselves.
    #[prost(message, optional, tag = "4")]
    root: Option<AnyType>,
}

#[derive(Clone, PartialEq, Message)]
struct ReferenceSegment {
    #[prost(message, optional, boxed, tag = "2")]
    struct_field: Option<Box<StructField>>,
}

#[derive(Clone, PartialEq, Message)]
struct StructField {
    #[prost(int32, tag = "1")]
    field: i32,
    #[prost(message, optional, boxed, tag = "2")]
    child: Option<Box<ReferenceSegment>>,
}

#[derive(Clone, PartialEq, Message)]
struct ScalarFunction {
    #[prost(uint32, tag = "1")]
    reference: u32,
    #[prost(message, repeated, tag = "4")]
    arguments: Vec<FunctionArgument>,
}

#[derive(Clone, PartialEq, Message)]
struct FunctionArgument {
    #[prost(message, optional, boxed, tag = "3")]
    value: Option<Box<Expression>>,
}

#[derive(Clone, PartialEq, Message)]
struct IfThen {
    #[prost(message, repeated, tag = "1")]
    ifs: Vec<IfClause>,
    #[prost(message, optional, boxed, tag = "2")]
    otherwise: Option<Box<Expression>>,
}

#[derive(Clone, PartialEq, Message)]
struct IfClause {
    #[prost(message, optional, tag = "1")]
    condition: Option<Expression>,
    #[prost(message, optional, tag = "2")]
    then: Option<Expression>,
}

#[derive(Clone, PartialEq, Message)]
struct SingularOrList {
    #[prost(message, optional, boxed, tag = "1")]
    value: Option<Box<Expression>>,
    #[prost(message, repeated, tag = "2")]
    options: Vec<Expression>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_expression_are_refused() {
        assert_eq!(
            parse_predicate(&[]).expect_err("empty").to_string(),
            "predicate: expected an ExtendedExpression of Substrait, got 0 expressions"
        );
        for bytes in [&[0xff_u8; 40][..], &[0x1a, 0x7f, 0x0a]] {
            let text = parse_predicate(bytes).expect_err("no message").to_string();
            assert!(text.starts_with("predicate: expected an ExtendedExpression of Substrait, got "), "{text}");
        }
    }
}
