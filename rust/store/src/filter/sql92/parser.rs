//! Parses an expression into a tree.
//!
//! Precedence, loosest first: OR, AND, `= <> IS NULL`, `> >= < <= BETWEEN IN CONTAINS STARTSWITH ENDSWITH`, `+ -
//! NOT`. Like RocketMQ, the parser ignores any text behind a complete expression.
//!
//! Source: `SelectorParser.jj` (grammar), `ConstantExpression.createFromDecimal`, `createFloat`, `ComparisonExpression.create*`,
//! `check*`, `SelectorParser.asBooleanExpression`.
use super::evaluate::compare;
use super::lexer::{Dialect, Fault, Kind, Lexer, Token};
use super::tree::{Node, NodeId, Order, Part, Tree, Value};
use std::collections::HashMap;

pub(super) fn parse(text: &str, dialect: Dialect) -> Result<Tree, Fault> {
    let mut lexer = Lexer::new(text, dialect);
    let token = lexer.token()?;
    let mut parser = Parser { lexer, token, builder: Builder::default(), nesting: 0 };
    let root = parser.or()?;
    // The whole expression must be a condition, not a value.
    parser.builder.condition(root, 0)?;
    Ok(parser.builder.tree)
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    builder: Builder<'t>,
    nesting: u16,
}

impl<'t> Parser<'t> {
    fn or(&mut self) -> Result<NodeId, Fault> {
        self.chain(Kind::Or, Self::and, Node::Or)
    }

    fn and(&mut self) -> Result<NodeId, Fault> {
        self.chain(Kind::And, Self::equality, Node::And)
    }

    /// Parses one operand, or a chain of operands that are joined by `word`. Returns the node of the operand or of the
    /// chain.
    fn chain(
        &mut self,
        word: Kind<'static>,
        operand: fn(&mut Self) -> Result<NodeId, Fault>,
        join: fn(Box<[NodeId]>) -> Node,
    ) -> Result<NodeId, Fault> {
        let start = self.token.at;
        let first = operand(self)?;
        if self.token.kind != word {
            return Ok(first);
        }
        let mut operands = vec![self.builder.condition(first, start)?];
        while self.accept(word)? {
            let at = self.token.at;
            let next = operand(self)?;
            operands.push(self.builder.condition(next, at)?);
        }
        self.builder.push(join(operands.into()), start)
    }

    fn equality(&mut self) -> Result<NodeId, Fault> {
        // Left-associative: `a = b = c` compares the result of `a = b` with `c`.
        let mut operand = self.comparison()?;
        loop {
            let Token { kind, at } = self.token;
            if !matches!(kind, Kind::Equal | Kind::NotEqual | Kind::Is) {
                return Ok(operand);
            }
            self.advance()?;
            operand = match kind {
                Kind::Is => self.is_null(operand, at)?,
                _ => {
                    let right = self.comparison()?;
                    let equal = self.builder.equal(operand, right, at)?;
                    if kind == Kind::Equal { equal } else { self.builder.not(equal, at)? }
                }
            };
        }
    }

    fn is_null(&mut self, left: NodeId, at: usize) -> Result<NodeId, Fault> {
        let not = self.accept(Kind::Not)?;
        self.expect(Kind::Null, "NULL")?;
        let null = self.builder.push(Node::IsNull(left), at)?;
        if not { self.builder.not(null, at) } else { Ok(null) }
    }

    fn comparison(&mut self) -> Result<NodeId, Fault> {
        let mut operand = self.unary()?;
        loop {
            let at = self.token.at;
            // NOT must be followed by an operator. RocketMQ fails otherwise.
            let not = self.accept(Kind::Not)?;
            let operator = self.token.kind;
            operand = match (order(operator), part(operator)) {
                (Some(order), _) if !not => {
                    self.advance()?;
                    let right = self.unary()?;
                    self.builder.compare(order, operand, right, at)?
                }
                (_, Some(part)) => {
                    self.advance()?;
                    let search = self.string()?;
                    self.builder.push(Node::Match { not, part, value: operand, search }, at)?
                }
                _ if operator == Kind::Between => self.between(not, operand, at)?,
                _ if operator == Kind::In => self.in_list(not, operand, at)?,
                _ if not => return Err(self.unexpected_token("BETWEEN or IN after NOT")),
                _ => return Ok(operand),
            };
        }
    }

    fn between(&mut self, not: bool, value: NodeId, at: usize) -> Result<NodeId, Fault> {
        self.advance()?;
        let low = self.unary()?;
        self.expect(Kind::And, "AND")?;
        let high = self.unary()?;
        self.builder.between(not, [value, low, high], at)
    }

    fn in_list(&mut self, not: bool, value: NodeId, at: usize) -> Result<NodeId, Fault> {
        self.advance()?;
        self.builder.check_property(value, at)?;
        self.expect(Kind::Open, "'('")?;
        let mut list = vec![self.string()?];
        while self.accept(Kind::Comma)? {
            list.push(self.string()?);
        }
        self.expect(Kind::Close, "',' or ')'")?;
        // Sorted, since long lists are searched by bisection.
        list.sort_unstable();
        list.dedup();
        self.builder.push(Node::In { not, value, list: list.into() }, at)
    }

    fn unary(&mut self) -> Result<NodeId, Fault> {
        let mut prefixes = Vec::new();
        while matches!(self.token.kind, Kind::Plus | Kind::Minus | Kind::Not) {
            // A loop instead of a recursion, so that many signs cannot overflow the stack.
            if prefixes.len() >= usize::from(MAX_DEPTH) {
                return Err(Builder::too_deep(self.token.at));
            }
            prefixes.push(self.token);
            self.advance()?;
        }
        let mut operand = self.primary()?;
        // The prefix next to the operand applies first.
        for Token { kind, at } in prefixes.into_iter().rev() {
            operand = match kind {
                Kind::Minus => self.builder.push(Node::Negate(operand), at)?,
                Kind::Not => self.builder.not(operand, at)?,
                _ => operand,
            };
        }
        Ok(operand)
    }

    fn primary(&mut self) -> Result<NodeId, Fault> {
        let Token { kind, at } = self.token;
        let value = match kind {
            Kind::Open => return self.parenthesis(),
            Kind::Name(name) => {
                self.advance()?;
                return self.builder.property(name, at);
            }
            Kind::Text(raw) => Value::Text(unquote(raw)),
            Kind::Integer(digits) => integer(digits, at)?,
            Kind::Decimal(digits) => decimal(digits, at)?,
            Kind::True => Value::Bool(true),
            Kind::False => Value::Bool(false),
            Kind::Null => Value::Null,
            _ => return Err(self.unexpected_token("a property, a value or '('")),
        };
        self.advance()?;
        self.builder.push(Node::Constant(value), at)
    }

    fn parenthesis(&mut self) -> Result<NodeId, Fault> {
        // Limits the recursion, so that parentheses cannot overflow the stack.
        if self.nesting >= MAX_DEPTH {
            return Err(Builder::too_deep(self.token.at));
        }
        self.nesting += 1;
        self.advance()?;
        let inner = self.or()?;
        self.expect(Kind::Close, "')'")?;
        self.nesting -= 1;
        Ok(inner)
    }

    fn string(&mut self) -> Result<Box<str>, Fault> {
        let Kind::Text(raw) = self.token.kind else { return Err(self.unexpected_token("a string in single quotes")) };
        self.advance()?;
        Ok(unquote(raw))
    }

    fn advance(&mut self) -> Result<(), Fault> {
        self.token = self.lexer.token()?;
        Ok(())
    }

    fn accept(&mut self, kind: Kind<'static>) -> Result<bool, Fault> {
        let is_next = self.token.kind == kind;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn expect(&mut self, kind: Kind<'static>, what: &str) -> Result<(), Fault> {
        if self.accept(kind)? { Ok(()) } else { Err(self.unexpected_token(what)) }
    }

    fn unexpected_token(&self, expected: &str) -> Fault {
        Fault::new(self.token.at, format!("expected {expected}, found {}", self.token.kind))
    }
}

fn order(kind: Kind<'_>) -> Option<Order> {
    Some(match kind {
        Kind::Greater => Order::Greater,
        Kind::GreaterOrEqual => Order::GreaterOrEqual,
        Kind::Less => Order::Less,
        Kind::LessOrEqual => Order::LessOrEqual,
        _ => return None,
    })
}

fn part(kind: Kind<'_>) -> Option<Part> {
    Some(match kind {
        Kind::Contains => Part::Contains,
        Kind::StartsWith => Part::StartsWith,
        Kind::EndsWith => Part::EndsWith,
        _ => return None,
    })
}

fn unquote(raw: &str) -> Box<str> {
    raw.replace("''", "'").into()
}

/// Parses an integer to the smallest Java type that holds it, `Integer` or `Long`.
fn integer(digits: &str, at: usize) -> Result<Value<Box<str>>, Fault> {
    let value: i64 = digits
        .trim_end_matches(['l', 'L'])
        .parse()
        .map_err(|_| Fault::new(at, format!("integer {digits} is above {}", i64::MAX)))?;
    Ok(i32::try_from(value).map_or(Value::Long(value), Value::Int))
}

/// Parses a decimal. Fails for zero, because RocketMQ considers zero to be below `Double.MIN_VALUE`.
fn decimal(digits: &str, at: usize) -> Result<Value<Box<str>>, Fault> {
    match digits.parse::<f64>() {
        Ok(0.0) => Err(Fault::new(at, format!("decimal {digits} is below 4.9E-324; write 0"))),
        Ok(value) if value.is_finite() => Ok(Value::Double(value)),
        _ => Err(Fault::new(at, format!("decimal {digits} is above {:e}", f64::MAX))),
    }
}

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
    /// Adds a node and returns its id. Checks the depth of the tree, but not the types.
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

    /// Returns `node` as a condition. Fails if `node` is a value other than a property.
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
