//! The report as one page without scripts, which loads nothing.

use std::fmt::Write;

use super::drawing;
use super::picture;
use super::report::{Report, Shown};
use crate::report::escape::escape;
use crate::report::html::{STYLE, date};

// Writing into a string cannot fail.
macro_rules! put {
    ($out:expr, $($arguments:tt)*) => { let _ = writeln!($out, $($arguments)*); };
}

/// Formats the page.
pub(super) fn page(report: &Report) -> String {
    let mut body = String::new();
    header(&mut body, report);
    headlines(&mut body, report);
    for shown in &report.figures {
        figure(&mut body, shown);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>Figures</title>\n<style>\n{STYLE}</style>\n<main>\n{body}</main>\n</html>\n"
    )
}

fn header(out: &mut String, report: &Report) {
    let machine = &report.machine;
    put!(
        out,
        "<header>\n<h1>Figures of published evaluations, measured here</h1>"
    );
    put!(
        out,
        "<p class=\"soft\">{} · {}, {} cores · Linux {} · hammer {} · {}</p>",
        date(report.written_unix_s),
        escape(&machine.processor),
        machine.cores,
        escape(&machine.kernel),
        escape(&report.hammer),
        escape(&report.setting)
    );
    put!(out, "<dl class=\"card\">");
    for (name, version) in &report.versions {
        put!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(version));
    }
    put!(out, "</dl>");
    put!(
        out,
        "<p>Carried <em>in time</em>: 99.5 % of the packets arrive, and 99 of 100 within their frame interval. Lines end with the first \
         number of participants that was not in time. Dotted grey lines were published, on other machines. Each server has one core, \
         and the load another, unless a figure says otherwise.</p>\n</header>"
    );
}

fn headlines(out: &mut String, report: &Report) {
    put!(
        out,
        "<section>\n<h2>In short</h2>\n<div class=\"card scroll\">\n<table>\n<thead><tr>"
    );
    for heading in ["", "published", "a peer here", "Portunus here"] {
        put!(out, "<th scope=\"col\">{heading}</th>");
    }
    put!(out, "</tr></thead>\n<tbody>");
    for row in &report.headlines {
        put!(
            out,
            "<tr style=\"--colour: var(--s0)\"><td><a href=\"#{}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td></tr>",
            row.figure,
            escape(row.claim),
            escape(row.published),
            escape(row.peer.as_deref().unwrap_or_default()),
            escape(row.ours.as_deref().unwrap_or_default())
        );
    }
    put!(out, "</tbody>\n</table>\n</div>\n</section>");
}

fn figure(out: &mut String, shown: &Shown) {
    let figure = shown.figure;
    put!(
        out,
        "<section id=\"{}\">\n<h2>{}: {}</h2>\n<p class=\"soft\">{}</p>",
        shown.name,
        shown.name,
        escape(shown.title),
        escape(&shown.citation)
    );
    for (label, text) in [("Original", figure.original), ("Here", figure.here)] {
        if !text.is_empty() {
            put!(out, "<p><strong>{label}.</strong> {}</p>", escape(text));
        }
    }
    put!(out, "<div class=\"charts\">");
    for drawn in &shown.plots {
        put!(
            out,
            "<figure>\n<figcaption><h3>{}</h3>{}</figcaption>\n{}\n<ul class=\"legend\">",
            escape(drawn.title),
            escape(&drawing::caption(drawn)),
            drawn.svg
        );
        for entry in picture::legend(drawn) {
            let class = if entry.is_dashed { "dashed" } else { "solid" };
            put!(
                out,
                "<li class=\"{class}\" style=\"--colour: var(--{})\">{}</li>",
                entry.colour,
                escape(entry.name)
            );
        }
        put!(out, "</ul>\n</figure>");
    }
    put!(out, "</div>");
    notes(out, "Not measured", &shown.missing);
    notes(out, "Doubts about these figures", &shown.doubts);
    if !shown.commands.is_empty() {
        put!(out, "<details><summary>Commands</summary>");
        for command in &shown.commands {
            put!(out, "<p><code>{}</code></p>", escape(command));
        }
        put!(out, "</details>");
    }
    put!(out, "</section>");
}

fn notes(out: &mut String, title: &str, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    put!(
        out,
        "<div class=\"warnings\" role=\"note\"><strong>{title}</strong>\n<ul>"
    );
    for line in lines {
        put!(out, "<li>{}</li>", escape(line));
    }
    put!(out, "</ul></div>");
}
