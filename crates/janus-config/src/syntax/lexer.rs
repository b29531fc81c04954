//! The tokens of libconfig, in a file and its included files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::comments::{Comment, Lines};
use super::source::{MAX_INCLUDES, included};
use super::{Location, Problem, Sources, SyntaxError};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Name(String),
    Text(String),
    Bool(bool),
    Integer(i64),
    Float(f64),
    /// `=` or `:`
    Assign(char),
    /// `,` or `;`
    Separator(char),
    /// One of `{ } [ ] ( )`.
    Bracket(char),
    End,
}

impl Token {
    /// Returns the token for error messages.
    pub(super) fn shown(&self) -> String {
        match self {
            Token::Name(name) => name.clone(),
            Token::Text(_) => "text in quotes".to_owned(),
            Token::Bool(value) => value.to_string(),
            Token::Integer(value) => value.to_string(),
            Token::Float(value) => value.to_string(),
            Token::Assign(c) | Token::Separator(c) | Token::Bracket(c) => c.to_string(),
            Token::End => "the end of the file".to_owned(),
        }
    }
}

/// A text that is being read.
#[derive(Debug)]
struct Text {
    file: Arc<Path>,
    text: String,
    /// The index of the next byte.
    next: usize,
    line: usize,
    column: usize,
    /// The columns of the line so far. A tab counts as 4.
    indent: usize,
    /// The indent of the first token in the line.
    first: Option<usize>,
}

impl Text {
    fn new(file: Arc<Path>, text: String) -> Self {
        Text {
            file,
            text,
            next: 0,
            line: 1,
            column: 1,
            indent: 0,
            first: None,
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.next..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        const TAB: usize = 4;
        let c = self.peek()?;
        self.next += c.len_utf8();
        match c {
            '\n' => {
                self.line += 1;
                (self.column, self.indent, self.first) = (1, 0, None);
            }
            '\t' => {
                self.column += 1;
                self.indent = (self.indent / TAB + 1) * TAB;
            }
            _ => {
                self.column += 1;
                self.indent += 1;
            }
        }
        Some(c)
    }

    fn take_while(&mut self, is_wanted: impl Fn(char) -> bool) -> String {
        let taken: String = self.rest().chars().take_while(|c| is_wanted(*c)).collect();
        self.skip(taken.chars().count());
        taken
    }

    fn skip(&mut self, chars: usize) {
        for _ in 0..chars {
            self.advance();
        }
    }

    fn location(&self) -> Location {
        Location {
            file: self.file.clone(),
            line: self.line,
            column: self.column,
        }
    }

    /// Returns whether the line has only spaces so far.
    fn is_at_line_start(&self) -> bool {
        self.first.is_none()
    }
}

/// Reads tokens.
#[derive(Debug)]
pub(super) struct Lexer<'a, 's> {
    /// The file, and the files that are being included, the innermost last.
    texts: Vec<Text>,
    sources: &'a mut Sources<'s>,
    /// The comments of each file.
    pub(super) comments: BTreeMap<Arc<Path>, Lines>,
}

impl<'a, 's> Lexer<'a, 's> {
    pub(super) fn new(
        file: &Path,
        text: &str,
        sources: &'a mut Sources<'s>,
    ) -> Result<Self, SyntaxError> {
        let too_large = |problem| SyntaxError {
            at: Location::start(file),
            problem,
        };
        sources.count(text.len()).map_err(too_large)?;
        Ok(Lexer {
            texts: vec![Text::new(file.into(), text.to_owned())],
            sources,
            comments: BTreeMap::new(),
        })
    }

    /// Returns the next token with its place.
    pub(super) fn next(&mut self) -> Result<(Location, Token), SyntaxError> {
        loop {
            let is_included = self.texts.len() > 1;
            let Some(text) = self.texts.last_mut() else {
                // There is always the outermost text.
                return Ok((Location::start(Path::new("")), Token::End));
            };
            text.take_while(char::is_whitespace);
            let at = text.location();
            let Some(c) = text.peek() else {
                if !is_included {
                    return Ok((at, Token::End));
                }
                self.texts.pop();
                continue;
            };
            if text.rest().starts_with("@include") {
                self.include(at)?;
                continue;
            }
            if self.comment(&at)? {
                continue;
            }
            let Some(text) = self.texts.last_mut() else {
                continue;
            };
            text.first.get_or_insert(text.indent);
            let token = token(text, c);
            return match token {
                Ok(token) => Ok((at, token)),
                Err(problem) => Err(SyntaxError { at, problem }),
            };
        }
    }

    /// Reads `@include "file"`.
    fn include(&mut self, at: Location) -> Result<(), SyntaxError> {
        let failed = |problem| SyntaxError {
            at: at.clone(),
            problem,
        };
        let Some(text) = self.texts.last_mut() else {
            return Ok(());
        };
        text.skip("@include".len());
        text.take_while(|c| c == ' ' || c == '\t');
        if text.peek() != Some('"') {
            return Err(failed(Problem::Expected {
                expected: "a file in quotes after @include",
                found: found(text),
            }));
        }
        let name = string(text).map_err(failed)?;
        let path = included(&text.file, &name);
        if self.texts.iter().any(|text| *text.file == *path) {
            return Err(failed(Problem::IncludeCycle(path)));
        }
        if self.texts.len() > MAX_INCLUDES {
            return Err(failed(Problem::TooManyIncludes(MAX_INCLUDES)));
        }
        let content = self.sources.include(&path).map_err(failed)?;
        self.texts.push(Text::new(path.into(), content));
        Ok(())
    }

    /// Reads a comment, if there is one.
    fn comment(&mut self, at: &Location) -> Result<bool, SyntaxError> {
        let Some(text) = self.texts.last_mut() else {
            return Ok(false);
        };
        let lines = self.comments.entry(text.file.clone()).or_default();
        let (is_alone, indent) = (text.is_at_line_start(), text.indent);
        let line_indent = text.first.unwrap_or(indent);
        let comment = |content: &str| Comment {
            text: content.trim().to_owned(),
            indent,
            is_alone,
            line_indent,
        };
        if text.rest().starts_with("/*") {
            let end = text.rest().find("*/").ok_or_else(|| SyntaxError {
                at: at.clone(),
                problem: Problem::OpenComment,
            })?;
            let content = text.rest().get(2..end).unwrap_or_default().to_owned();
            for (line, content) in (at.line..).zip(content.lines()) {
                let content = content.trim().trim_start_matches('*');
                lines.insert(line, comment(content));
            }
            let end = text.next.saturating_add(end + 2);
            while text.next < end && text.advance().is_some() {}
            return Ok(true);
        }
        if text.peek() != Some('#') && !text.rest().starts_with("//") {
            return Ok(false);
        }
        let content = text.take_while(|c| c != '\n');
        lines.insert(at.line, comment(content.trim_start_matches(['#', '/'])));
        Ok(true)
    }
}

/// Reads the token that starts with `c`.
fn token(text: &mut Text, c: char) -> Result<Token, Problem> {
    let single = match c {
        '=' | ':' => Token::Assign(c),
        ',' | ';' => Token::Separator(c),
        '{' | '}' | '[' | ']' | '(' | ')' => Token::Bracket(c),
        '"' => return string(text).map(Token::Text),
        '+' | '-' | '.' | '0'..='9' => return number(text),
        c if c.is_ascii_alphabetic() || c == '*' => {
            let name = text.take_while(|c| c.is_ascii_alphanumeric() || "-_*".contains(c));
            return Ok(match name.to_ascii_lowercase().as_str() {
                "true" => Token::Bool(true),
                "false" => Token::Bool(false),
                _ => Token::Name(name),
            });
        }
        _ => {
            let found = found(text);
            let expected = "a name, a bracket or a value (text needs quotes)";
            return Err(Problem::Expected { expected, found });
        }
    };
    text.advance();
    Ok(single)
}

/// Returns the text at a place for error messages.
fn found(text: &Text) -> String {
    match text.rest().split_whitespace().next() {
        Some(word) => word.chars().take(40).collect(),
        None => Token::End.shown(),
    }
}

/// Reads a quoted string.
fn string(text: &mut Text) -> Result<String, Problem> {
    text.advance();
    let mut read = String::new();
    while let Some(c) = text.advance() {
        match c {
            '"' => return Ok(read),
            '\\' => read.push(escaped(text)),
            c => read.push(c),
        }
    }
    Err(Problem::OpenString)
}

/// Reads the characters after a backslash. Before unknown letters, the backslash is kept, as in
/// libconfig.
fn escaped(text: &mut Text) -> char {
    let known = match text.peek() {
        Some('a') => '\x07',
        Some('b') => '\x08',
        Some('f') => '\x0c',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\x0b',
        Some(c @ ('"' | '\\')) => c,
        Some('x') => return hexadecimal(text).unwrap_or('\\'),
        _ => return '\\',
    };
    text.advance();
    known
}

/// Reads `xNN`.
fn hexadecimal(text: &mut Text) -> Option<char> {
    let written = text.rest().get(1..3)?;
    let is_hexadecimal = written.bytes().all(|byte| byte.is_ascii_hexdigit());
    let byte = u8::from_str_radix(written, 16)
        .ok()
        .filter(|_| is_hexadecimal)?;
    let digits = written.len();
    text.skip(1 + digits);
    Some(char::from(byte))
}

/// Reads a number: decimal, `0x…`, `0b…`, `0o…` or `0q…` with `L` or `LL` at its end, or one with a
/// point or an exponent.
fn number(text: &mut Text) -> Result<Token, Problem> {
    let is_of_number = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let written = text.take_while(is_of_number);
    let wrong = || Problem::Number(written.clone());
    let (sign, digits) = match written.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, written.strip_prefix('+').unwrap_or(&written)),
    };
    let lower = digits.to_ascii_lowercase();
    for (prefix, radix) in [("0x", 16), ("0b", 2), ("0o", 8), ("0q", 8)] {
        if let Some(digits) = lower.strip_prefix(prefix) {
            let digits = digits.trim_end_matches('l');
            if digits.starts_with(['+', '-']) {
                return Err(wrong());
            }
            // As in C, these may fill all bits: 0xFFFFFFFFFFFFFFFF is -1.
            let bits = u64::from_str_radix(digits, radix).map_err(|_| wrong())?;
            let value = i64::from_ne_bytes(bits.to_ne_bytes()).checked_mul(sign);
            return value.map(Token::Integer).ok_or_else(wrong);
        }
    }
    let is_float = lower.contains(['.', 'e']);
    if is_float {
        let is_digits = lower.starts_with(|c: char| c.is_ascii_digit() || c == '.');
        let value = written.parse().ok().filter(|value: &f64| value.is_finite());
        return value
            .filter(|_| is_digits)
            .map(Token::Float)
            .ok_or_else(wrong);
    }
    let whole = written.trim_end_matches(['l', 'L']);
    whole.parse().map(Token::Integer).map_err(|_| wrong())
}
