//! The compiled expression: a vector of nodes in which children come before their parents.
use std::cmp::Ordering;

/// Index of a node in [`Tree::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(pub(super) u32);

/// A value of SQL92. The tree owns its strings, and an evaluation borrows them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<T> {
    Null,
    Bool(bool),
    Int(i32),
    Long(i64),
    Double(f64),
    Text(T),
}

impl Value<Box<str>> {
    pub(super) fn borrow(&self) -> Value<&str> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Long(value) => Value::Long(*value),
            Self::Double(value) => Value::Double(*value),
            Self::Text(text) => Value::Text(text),
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Int(_) | Self::Long(_) | Self::Double(_))
    }

    pub(super) fn is_bool_or_null(&self) -> bool {
        matches!(self, Self::Bool(_) | Self::Null)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Order {
    pub(super) fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
        }
    }
}

/// The string operators of 5.x.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Contains,
    StartsWith,
    EndsWith,
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    Constant(Value<Box<str>>),
    /// A property, as an index into [`Tree::names`].
    Property(u32),
    /// A property used as a condition. Null if the message does not have the property, else false.
    Cast(NodeId),
    Negate(NodeId),
    Not(NodeId),
    And(Box<[NodeId]>),
    Or(Box<[NodeId]>),
    Equal(NodeId, NodeId),
    IsNull(NodeId),
    Compare(Order, NodeId, NodeId),
    Between {
        not: bool,
        value: NodeId,
        low: NodeId,
        high: NodeId,
    },
    /// IN with a list of strings. `list` is sorted for binary search.
    In {
        not: bool,
        value: NodeId,
        list: Box<[Box<str>]>,
    },
    Match {
        not: bool,
        part: Part,
        value: NodeId,
        search: Box<str>,
    },
}

impl Node {
    /// Returns whether RocketMQ implements the node as a `BooleanExpression`. The constants TRUE, FALSE and NULL are
    /// conditions, a property is not.
    pub(super) fn is_condition(&self) -> bool {
        match self {
            Self::Constant(value) => value.is_bool_or_null(),
            Self::Property(_) | Self::Negate(_) => false,
            _ => true,
        }
    }

    pub(super) fn children(&self) -> impl Iterator<Item = NodeId> {
        let (few, many): ([Option<NodeId>; 3], &[NodeId]) = match self {
            Self::Constant(_) | Self::Property(_) => ([None; 3], &[]),
            Self::Cast(only) | Self::Negate(only) | Self::Not(only) | Self::IsNull(only) => {
                ([Some(*only), None, None], &[])
            }
            Self::In { value, .. } | Self::Match { value, .. } => ([Some(*value), None, None], &[]),
            Self::Equal(left, right) | Self::Compare(_, left, right) => ([Some(*left), Some(*right), None], &[]),
            Self::Between { value, low, high, .. } => ([Some(*value), Some(*low), Some(*high)], &[]),
            Self::And(operands) | Self::Or(operands) => ([None; 3], operands),
        };
        few.into_iter().flatten().chain(many.iter().copied())
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    /// The nodes. The last node is the root.
    pub(super) nodes: Vec<Node>,
    pub(super) names: Vec<Box<str>>,
}

impl Tree {
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }
}
