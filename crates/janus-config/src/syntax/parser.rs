//! libconfig: `.jcfg` files.

use std::collections::HashMap;
use std::path::Path;

use super::comments;
use super::lexer::{Lexer, Token};
use super::{Group, Location, Problem, Setting, Sources, SyntaxError, Value};

/// The deepest nesting of groups, lists and arrays.
pub const MAX_DEPTH: usize = 32;

/// Reads the text of a `.jcfg` file. Included files are relative to the file that includes them.
pub fn parse_jcfg(
    file: &Path,
    text: &str,
    sources: &mut Sources<'_>,
) -> Result<Group, SyntaxError> {
    let mut lexer = Lexer::new(file, text, sources)?;
    let first = lexer.next()?;
    let mut parser = Parser {
        lexer,
        next: first,
        depth: 0,
    };
    let mut group = parser.settings(&Token::End)?;
    comments::attach(&mut group, &parser.lexer.comments);
    Ok(group)
}

struct Parser<'a, 's> {
    lexer: Lexer<'a, 's>,
    next: (Location, Token),
    depth: usize,
}

impl Parser<'_, '_> {
    fn advance(&mut self) -> Result<(Location, Token), SyntaxError> {
        let next = self.lexer.next()?;
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn peek(&self) -> &Token {
        &self.next.1
    }

    fn expected(&self, expected: &'static str) -> SyntaxError {
        let (at, token) = &self.next;
        let found = token.shown();
        SyntaxError {
            at: at.clone(),
            problem: Problem::Expected { expected, found },
        }
    }

    /// Reads settings up to `end`, and skips it.
    fn settings(&mut self, end: &Token) -> Result<Group, SyntaxError> {
        let mut settings: Vec<Setting> = Vec::new();
        let mut lines: HashMap<String, usize> = HashMap::new();
        while self.peek() != end {
            let Token::Name(_) = self.peek() else {
                return Err(self.expected(match end {
                    Token::End => "the name of a setting",
                    _ => "the name of a setting or }",
                }));
            };
            let (at, Token::Name(name)) = self.advance()? else {
                continue;
            };
            if let Some(first) = lines.insert(name.clone(), at.line) {
                let problem = Problem::Duplicate { name, first };
                return Err(SyntaxError { at, problem });
            }
            let Token::Assign(_) = self.peek() else {
                return Err(self.expected("= or : after the name of a setting"));
            };
            self.advance()?;
            let value = self.value()?;
            if let Token::Separator(_) = self.peek() {
                self.advance()?;
            }
            settings.push(Setting {
                name,
                value,
                at,
                comments: Vec::new(),
            });
        }
        if *end != Token::End {
            self.advance()?;
        }
        Ok(Group(settings))
    }

    fn value(&mut self) -> Result<Value, SyntaxError> {
        match self.peek() {
            Token::Bracket('{') => self.nested(|parser| {
                let end = Token::Bracket('}');
                parser.settings(&end).map(Value::Group)
            }),
            Token::Bracket('[') => self.nested(|parser| parser.array().map(Value::Array)),
            Token::Bracket('(') => self.nested(|parser| {
                let end = Token::Bracket(')');
                parser.elements(&end, Parser::value).map(Value::List)
            }),
            _ => self.scalar(),
        }
    }

    /// Skips an opening bracket, and reads its content.
    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Value, SyntaxError>,
    ) -> Result<Value, SyntaxError> {
        let (at, _) = self.advance()?;
        if self.depth >= MAX_DEPTH {
            let problem = Problem::TooDeep(MAX_DEPTH);
            return Err(SyntaxError { at, problem });
        }
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn scalar(&mut self) -> Result<Value, SyntaxError> {
        let value = match self.peek() {
            Token::Bool(value) => Value::Bool(*value),
            Token::Integer(value) => Value::Integer(*value),
            Token::Float(value) => Value::Float(*value),
            Token::Text(_) => return self.text().map(Value::Text),
            _ => return Err(self.expected("a value (text needs quotes)")),
        };
        self.advance()?;
        Ok(value)
    }

    /// Reads consecutive strings as one.
    fn text(&mut self) -> Result<String, SyntaxError> {
        let mut text = String::new();
        while let Token::Text(part) = &self.next.1 {
            text.push_str(part);
            self.advance()?;
        }
        Ok(text)
    }

    fn array(&mut self) -> Result<Vec<Value>, SyntaxError> {
        let mut first = None;
        self.elements(&Token::Bracket(']'), |parser| {
            let at = parser.next.0.clone();
            let value = parser.scalar()?;
            let (expected, found) = (*first.get_or_insert(value.kind()), value.kind());
            if expected != found {
                let problem = Problem::MixedArray { expected, found };
                return Err(SyntaxError { at, problem });
            }
            Ok(value)
        })
    }

    /// Reads comma-separated values up to `end`, and skips it. A comma may follow the last one.
    fn elements(
        &mut self,
        end: &Token,
        mut read: impl FnMut(&mut Self) -> Result<Value, SyntaxError>,
    ) -> Result<Vec<Value>, SyntaxError> {
        let mut values = Vec::new();
        while self.peek() != end {
            values.push(read(self)?);
            match self.peek() {
                Token::Separator(',') => drop(self.advance()?),
                token if token == end => {}
                _ => {
                    return Err(self.expected(match end {
                        Token::Bracket(']') => ", or ]",
                        _ => ", or )",
                    }));
                }
            }
        }
        self.advance()?;
        Ok(values)
    }
}
