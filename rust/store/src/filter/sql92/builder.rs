//! Builds the nodes of an expression tree, with the checks that RocketMQ makes when it compiles an expression.
//!
//! Source: `ComparisonExpression.create*` and `check*`, `SelectorParser.asBooleanExpression`.
use std::collections::HashMap;

use super::evaluate::compare;
use super::lexer::Fault;
use super::tree::{Node, NodeId, Order, Tree, Value};

/// Maximum nesting of an expression. A list of ANDs or ORs counts as one level. RocketMQ has no limit other than the
/// stack of its thread.
pub const MAX_DEPTH: u16 = 256;

/// Builds a tree from its leaves upwards. Arguments called `at` are byte positions in the expression, for errors.
#[derive(Debug, Default)]
pub(super) struct Builder<'t> {
    pub(super) tree: Tree,
    /// For each node, the height of the tree below it, counting the node.
    heights: Vec<u16>,
    slots: HashMap<&'t str, u32>,
}

impl<'t> Builder<'t> {
    /// Adds a node. Checks only the depth, not the types.
    pub(super) fn push(&mut self, node: Node, at: usize) -> Result<NodeId, Fault> {
        // Children come before their parents, so their heights are known.
        let height = 1 + node.children().map(|child| self.heights[child.0 as usize]).max().unwrap_or(0);
        if height > MAX_DEPTH {
            return Err(Self::too_deep(at));
        }
        self.tree.nodes.push(node);
        self.heights.push(height);
        Ok(NodeId(self.tree.nodes.len() as u32 - 1))
    }

    pub(super) fn too_deep(at: usize) -> Fault {
        Fault::new(at, format!("nested deeper than {MAX_DEPTH}"))
    }

    pub(super) fn property(&mut self, name: &'t str, at: usize) -> Result<NodeId, Fault> {
        let names = &mut self.tree.names;
        // A name that occurs several times shares one slot.
        let slot = *self.slots.entry(name).or_insert_with(|| {
            names.push(name.into());
            names.len() as u32 - 1
        });
        self.push(Node::Property(slot), at)
    }

    /// Converts `node` to a condition. Fails if `node` is a value other than a property.
    pub(super) fn condition(&mut self, node: NodeId, at: usize) -> Result<NodeId, Fault> {
        match self.tree.node(node) {
            Node::Property(_) => self.push(Node::Cast(node), at),
            other if other.is_condition() => Ok(node),
            _ => Err(Fault::new(at, "expected a condition, found a value")),
        }
    }

    pub(super) fn not(&mut self, operand: NodeId, at: usize) -> Result<NodeId, Fault> {
        let condition = self.condition(operand, at)?;
        self.push(Node::Not(condition), at)
    }

    pub(super) fn equal(&mut self, left: NodeId, right: NodeId, at: usize) -> Result<NodeId, Fault> {
        let (left_node, right_node) = (self.tree.node(left), self.tree.node(right));
        if [left_node, right_node].iter().any(|node| matches!(node, Node::Constant(Value::Null))) {
            return Err(Fault::new(at, "NULL cannot be compared; use IS NULL"));
        }
        let constants = matches!((left_node, right_node), (Node::Constant(_), Node::Constant(_)));
        // RocketMQ checks only this order of the sides: `TRUE = 1` is an error and `1 = TRUE` is false.
        if constants && left_node.is_condition() && !right_node.is_condition() {
            return Err(Fault::new(at, "TRUE or FALSE cannot be compared with a number or a string"));
        }
        self.push(Node::Equal(left, right), at)
    }

    pub(super) fn compare(&mut self, order: Order, left: NodeId, right: NodeId, at: usize) -> Result<NodeId, Fault> {
        self.check_ordered([left, right], at)?;
        self.push(Node::Compare(order, left, right), at)
    }

    /// Adds a BETWEEN. Fails for constant bounds in the wrong order, except after NOT, as in RocketMQ.
    pub(super) fn between(&mut self, not: bool, [value, low, high]: [NodeId; 3], at: usize) -> Result<NodeId, Fault> {
        self.check_ordered([value, low, high], at)?;
        if let (false, Node::Constant(l), Node::Constant(h)) = (not, self.tree.node(low), self.tree.node(high))
            && compare(h.borrow(), l.borrow()).is_ok_and(|ordering| ordering.is_lt())
        {
            return Err(Fault::new(at, "BETWEEN with a lower bound above the upper"));
        }
        self.push(Node::Between { not, value, low, high }, at)
    }

    /// Checks that `value` can be the left side of IN.
    pub(super) fn check_property(&self, value: NodeId, at: usize) -> Result<(), Fault> {
        match self.tree.node(value) {
            Node::Property(_) => Ok(()),
            _ => Err(Fault::new(at, "IN expects a property on its left")),
        }
    }

    /// Checks that `nodes` can be compared with `<`, `<=`, `>` or `>=`. Numbers and properties can.
    fn check_ordered<const N: usize>(&self, nodes: [NodeId; N], at: usize) -> Result<(), Fault> {
        for node in nodes {
            let kind = match self.tree.node(node) {
                // Constants are known now. A property may turn out to be no number for a message.
                Node::Constant(value) if value.is_number() => continue,
                Node::Constant(_) => "another constant",
                other if other.is_condition() => "a condition",
                _ => continue,
            };
            return Err(Fault::new(at, format!("only numbers and properties can be ordered, found {kind}")));
        }
        Ok(())
    }
}
