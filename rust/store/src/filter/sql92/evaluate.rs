//! Evaluates an expression tree for the properties of a message. The result is TRUE, FALSE, NULL or an error. Allocates no memory.
//!
//! Source: `ComparisonExpression.evaluate`, `__compare`, `LogicExpression`, `UnaryExpression`.
use std::cmp::Ordering;

use super::number::{java_double, java_int, java_long};
use super::tree::{Node, NodeId, Order, Part, Tree, Value};

/// The expression has no result for a message. Such a message does not match, as in RocketMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluationError {
    /// A property is compared with a number, but its value is not a number of that type.
    #[error("a property compared with a number holds no number of its kind")]
    NotANumber,
    /// A condition on the left side is compared with a string on the right side.
    #[error("a condition cannot be compared with a string")]
    BooleanWithString,
}

type Evaluated<T> = Result<T, EvaluationError>;

pub(super) fn evaluate<'p, F>(tree: &Tree, property: &F) -> Evaluated<Option<bool>>
where
    F: Fn(&str) -> Option<&'p str>,
{
    let Some(root) = tree.nodes.len().checked_sub(1) else { return Ok(None) };
    Evaluation { tree, property }.condition(NodeId(root as u32))
}

struct Evaluation<'t, F> {
    tree: &'t Tree,
    property: &'t F,
}

impl<'t, 'p: 't, F: Fn(&str) -> Option<&'p str>> Evaluation<'t, F> {
    fn value(&self, id: NodeId) -> Evaluated<Value<&'t str>> {
        match self.tree.node(id) {
            Node::Constant(value) => Ok(value.borrow()),
            Node::Property(slot) => Ok(self.text(*slot).map_or(Value::Null, Value::Text)),
            Node::Negate(operand) => self.value(*operand).map(negate),
            _ => Ok(self.condition(id)?.map_or(Value::Null, Value::Bool)),
        }
    }

    fn text(&self, slot: u32) -> Option<&'t str> {
        (self.property)(&self.tree.names[slot as usize])
    }

    fn condition(&self, id: NodeId) -> Evaluated<Option<bool>> {
        match self.tree.node(id) {
            Node::Constant(Value::Bool(value)) => Ok(Some(*value)),
            // A property by itself is a string, and a string is never TRUE.
            Node::Constant(_) | Node::Property(_) | Node::Negate(_) => Ok(None),
            // `a AND TRUE` with a property `a` is never TRUE, as in RocketMQ.
            Node::Cast(operand) => Ok(if self.value(*operand)? == Value::Null { None } else { Some(false) }),
            Node::Not(operand) => Ok(self.condition(*operand)?.map(|value| !value)),
            Node::And(operands) => self.decide(operands, false),
            Node::Or(operands) => self.decide(operands, true),
            Node::Equal(left, right) => equal(self.value(*left)?, self.value(*right)?),
            Node::IsNull(operand) => Ok(Some(self.value(*operand)? == Value::Null)),
            Node::Compare(order, left, right) => self.compare_order(*order, self.value(*left)?, *right),
            Node::Between { not, value, low, high } => self.between(*not, *value, *low, *high),
            Node::In { not, value, list } => Ok(match self.value(*value)? {
                Value::Text(text) => Some(is_in(list, text) != *not),
                _ => None,
            }),
            Node::Match { not, part, value, search } => self.matching(*not, *part, *value, search),
        }
    }

    /// Evaluates AND (`decisive` is false) or OR (`decisive` is true). Stops at the first operand that equals
    /// `decisive`, so errors in later operands have no effect.
    fn decide(&self, operands: &[NodeId], decisive: bool) -> Evaluated<Option<bool>> {
        let mut result = Some(!decisive);
        for operand in operands {
            match self.condition(*operand)? {
                Some(value) if value == decisive => return Ok(Some(decisive)),
                Some(_) => {}
                None => result = None,
            }
        }
        Ok(result)
    }

    /// Evaluates `<`, `<=`, `>` or `>=`. Evaluates the right side only if the left side is not null.
    fn compare_order(&self, order: Order, left: Value<&str>, right: NodeId) -> Evaluated<Option<bool>> {
        if left == Value::Null {
            return Ok(None);
        }
        let ordering = match (left, self.value(right)?) {
            (_, Value::Null) => return Ok(None),
            // Two properties are compared as numbers, even if both are strings.
            (Value::Text(left), Value::Text(right)) => java_compare(double(left)?, double(right)?),
            (left, right) => compare(left, right)?,
        };
        Ok(Some(order.holds(ordering)))
    }

    fn between(&self, not: bool, value: NodeId, low: NodeId, high: NodeId) -> Evaluated<Option<bool>> {
        let value = self.value(value)?;
        let (first, second) =
            if not { (Order::Less, Order::Greater) } else { (Order::GreaterOrEqual, Order::LessOrEqual) };
        let first = self.compare_order(first, value, low)?;
        // The first comparison decides, so the second is not evaluated and cannot fail.
        if first == Some(not) {
            return Ok(first);
        }
        Ok(match self.compare_order(second, value, high)? {
            decided if decided == Some(not) => decided,
            other => first.and(other),
        })
    }

    /// Evaluates CONTAINS, STARTSWITH and ENDSWITH. If the value is null or not a string, the result is false, with
    /// NOT as well as without.
    fn matching(&self, not: bool, part: Part, value: NodeId, search: &str) -> Evaluated<Option<bool>> {
        // As in RocketMQ an empty search string matches no message, with or without NOT.
        if search.is_empty() {
            return Ok(Some(false));
        }
        let Value::Text(text) = self.value(value)? else { return Ok(Some(false)) };
        let is_match = match part {
            Part::Contains => text.contains(search),
            Part::StartsWith => text.starts_with(search),
            Part::EndsWith => text.ends_with(search),
        };
        Ok(Some(is_match != not))
    }
}

/// Evaluates `=`. Two nulls are equal. Otherwise a null on the left gives null, and a null on the right gives false.
fn equal(left: Value<&str>, right: Value<&str>) -> Evaluated<Option<bool>> {
    match (left, right) {
        (Value::Null, Value::Null) => Ok(Some(true)),
        (Value::Null, _) => Ok(None),
        (_, Value::Null) => Ok(Some(false)),
        (left, right) => Ok(Some(compare(left, right)?.is_eq())),
    }
}

/// Compares two values as Java does. A string is converted to the type of the other side. A boolean is less than any number.
pub(super) fn compare(left: Value<&str>, right: Value<&str>) -> Evaluated<Ordering> {
    use Value::{Bool, Double, Int, Long, Null, Text};
    Ok(match (left, right) {
        (Int(l), Int(r)) => l.cmp(&r),
        (Long(l), Long(r)) => l.cmp(&r),
        (Double(l), Double(r)) => java_compare(l, r),
        (Int(l), Long(r)) => i64::from(l).cmp(&r),
        (Long(l), Int(r)) => l.cmp(&i64::from(r)),
        (Int(l), Double(r)) => java_compare(f64::from(l), r),
        (Double(l), Int(r)) => java_compare(l, f64::from(r)),
        (Long(l), Double(r)) => java_compare(l as f64, r),
        (Double(l), Long(r)) => java_compare(l, r as f64),
        (Text(l), Text(r)) => l.cmp(r),
        (Text(l), Int(r)) => int(l)?.cmp(&r),
        (Int(l), Text(r)) => l.cmp(&int(r)?),
        (Text(l), Long(r)) => long(l)?.cmp(&r),
        (Long(l), Text(r)) => l.cmp(&long(r)?),
        (Text(l), Double(r)) => java_compare(double(l)?, r),
        (Double(l), Text(r)) => java_compare(l, double(r)?),
        (Bool(l), Bool(r)) => l.cmp(&r),
        // `Boolean.valueOf` converts any string but "true" to false.
        (Text(l), Bool(r)) => l.eq_ignore_ascii_case("true").cmp(&r),
        (Bool(_), Text(_)) => return Err(EvaluationError::BooleanWithString),
        (Bool(_), _) | (_, Bool(_)) | (Null, _) | (_, Null) => Ordering::Less,
    })
}

/// Compares two numbers as `Double.compare` does. NaN equals itself and is the largest value, and -0.0 is less than
/// 0.0.
fn java_compare(left: f64, right: f64) -> Ordering {
    // All NaNs are equal in Java, whatever their bits.
    let one_nan = |value: f64| if value.is_nan() { f64::NAN.abs() } else { value };
    one_nan(left).total_cmp(&one_nan(right))
}

fn int(text: &str) -> Evaluated<i32> {
    java_int(text).ok_or(EvaluationError::NotANumber)
}

fn long(text: &str) -> Evaluated<i64> {
    java_long(text).ok_or(EvaluationError::NotANumber)
}

fn double(text: &str) -> Evaluated<f64> {
    java_double(text).ok_or(EvaluationError::NotANumber)
}

fn negate(value: Value<&str>) -> Value<&str> {
    match value {
        // The smallest number is its own negative, as in Java.
        Value::Int(value) => Value::Int(value.wrapping_neg()),
        Value::Long(value) => Value::Long(value.wrapping_neg()),
        Value::Double(value) => Value::Double(-value),
        _ => Value::Null,
    }
}

fn is_in(list: &[Box<str>], text: &str) -> bool {
    const FEW: usize = 8;
    // A few strings are compared faster one by one.
    if list.len() <= FEW {
        list.iter().any(|element| **element == *text)
    } else {
        list.binary_search_by(|element| (**element).cmp(text)).is_ok()
    }
}
