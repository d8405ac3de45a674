// Package manual renders a command line's grammar as a man page, so that the
// pages in docs/man say what --help says. Tests use it to write the pages and
// to notice stale ones; no command does. Page is a pure function.
package manual

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// Page returns the man page of a program, in the macros of man(7).
func Page(app *kong.Application) string {
	var b strings.Builder
	about, more, _ := strings.Cut(app.Help, "\n\n")
	fmt.Fprintf(&b, ".\\\" Generated from the command line's grammar; see CONTRIBUTING.md.\n")
	fmt.Fprintf(&b, ".TH %s 1 \"\" Cartwheel\n", strings.ToUpper(app.Name))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(app.Name), escape(strings.TrimSuffix(about, ".")))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n\\fICOMMAND\\fR [\\fIOPTION\\fR ...]\n", escape(app.Name))
	if more != "" {
		b.WriteString(".SH DESCRIPTION\n")
		paragraphs(&b, more)
	}
	b.WriteString(".SH OPTIONS\nEvery command takes these.\n")
	flags(&b, app.Flags)
	b.WriteString(".SH COMMANDS\n")
	for _, leaf := range app.Leaves(true) {
		command(&b, app, leaf)
	}
	return b.String()
}

// command writes one command. What the program's own description says already,
// such as the exit statuses, is left out of its text.
func command(b *strings.Builder, app *kong.Application, leaf *kong.Node) {
	words := app.Name + " " + strings.TrimSuffix(leaf.Path(), " run")
	for _, p := range leaf.Positional {
		words += " " + p.Summary()
	}
	fmt.Fprintf(b, ".SS %s\n", escape(words))
	paragraphs(b, leaf.Help)
	for p := range strings.SplitSeq(leaf.Detail, "\n\n") {
		if p != "" && !strings.Contains(app.Help, p) {
			b.WriteString(".PP\n")
			paragraphs(b, p)
		}
	}
	for _, p := range leaf.Positional {
		fmt.Fprintf(b, ".TP\n\\fI%s\\fR\n%s\n", escape(p.Name), escape(p.Help))
	}
	flags(b, leaf.Flags)
}

func flags(b *strings.Builder, all []*kong.Flag) {
	for _, f := range all {
		if f.Hidden {
			continue
		}
		b.WriteString(".TP\n")
		if f.Short != 0 {
			fmt.Fprintf(b, "\\fB\\-%c\\fR, ", f.Short)
		}
		name := f.Name
		if f.Tag.Negatable != "" {
			name = "[no-]" + name
		}
		fmt.Fprintf(b, "\\fB\\-\\-%s\\fR", escape(name))
		if !f.IsBool() {
			fmt.Fprintf(b, "=\\fI%s\\fR", escape(strings.ToUpper(strings.ReplaceAll(placeholder(f), "-", "_"))))
		}
		fmt.Fprintf(b, "\n%s", escape(f.Help))
		if f.HasDefault && !f.IsBool() {
			fmt.Fprintf(b, " Default: %s.", escape(f.Default))
		}
		for _, e := range f.Envs {
			fmt.Fprintf(b, " Environment: %s.", escape(e))
		}
		b.WriteString("\n")
	}
}

func placeholder(f *kong.Flag) string {
	if f.PlaceHolder != "" {
		return f.PlaceHolder
	}
	return f.Name
}

// paragraphs writes text whose paragraphs are apart by empty lines. An indented
// one keeps its lines.
func paragraphs(b *strings.Builder, text string) {
	for i, p := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		literal := strings.HasPrefix(p, "  ")
		if literal {
			b.WriteString(".nf\n")
		}
		for line := range strings.Lines(p) {
			fmt.Fprintf(b, "%s\n", escape(strings.TrimSpace(line)))
		}
		if literal {
			b.WriteString(".fi\n")
		}
	}
}

// escape keeps roff from reading text as its own requests.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ", "…", "...").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
