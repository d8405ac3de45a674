package examples

import (
	"regexp"
	"strings"
)

// Step is what a reader enters at once, with what it prints.
type Step struct {
	Block   Block
	Line    int      // in the page
	Host    string   // the machine that the prompt names, or nothing
	Command string   // may have several lines
	Output  []string // what the page shows of its output
}

// Steps are the steps of a page, in order.
func (p Page) Steps() []Step {
	var out []Step
	for _, b := range p.Blocks {
		if !b.Shell() {
			continue
		}
		steps := b.steps()
		if len(steps) == 0 && len(out) > 0 {
			out[len(out)-1].Output = b.Lines
		}
		out = append(out, steps...)
	}
	return out
}

// steps are those of a block: the whole of it, or one for each prompt.
func (b Block) steps() []Step {
	if b.Language != "console" {
		return []Step{{Block: b, Line: b.Line, Command: b.Text()}}
	}
	prompt := regexp.MustCompile(`^([a-z]*)[$#] (.*)$`)
	var out []Step
	continued := false
	for i, line := range b.Lines {
		m := prompt.FindStringSubmatch(line)
		switch {
		case continued:
			last := &out[len(out)-1]
			last.Command += line + "\n"
			continued = strings.HasSuffix(line, `\`)
		case m != nil:
			out = append(out, Step{Block: b, Line: b.Line + i, Host: m[1], Command: m[2] + "\n"})
			continued = strings.HasSuffix(line, `\`)
		case len(out) > 0:
			last := &out[len(out)-1]
			last.Output = append(last.Output, line)
		}
	}
	return out
}

// Lines are the command lines of a step: each simple command with its words,
// without comments, redirections and assignments. They follow the shell as far
// as documents go; a here-document would be too much.
func (s Step) Lines() [][]string {
	var out [][]string
	for _, line := range strings.Split(strings.ReplaceAll(s.Command, "\\\n", " "), "\n") {
		out = append(out, commands(line)...)
	}
	return out
}

// commands splits a line of shell into its simple commands.
func commands(line string) [][]string {
	var out [][]string
	var words []string
	end := func() {
		if len(words) > 0 {
			out = append(out, words)
		}
		words = nil
	}
	skip := false // the next word is a redirection's file
	for rest := line; ; {
		word, after, quoted := next(rest)
		if word == "" && !quoted {
			break
		}
		rest = after
		switch {
		case !quoted && strings.HasPrefix(word, "#"):
			rest = ""
		case !quoted && strings.ContainsAny(word[:1], ";|&()"):
			end()
		case !quoted && strings.ContainsAny(word[:1], "<>"):
			skip = true
		case skip:
			skip = false
		case len(words) == 0 && regexp.MustCompile(`^[A-Za-z_]+=`).MatchString(word):
		default:
			words = append(words, word)
		}
	}
	end()
	return out
}

// next takes a word, or a run of operators, from the front of a line of shell.
// Quotes are taken off, and a substitution in quotes stays as it is.
func next(line string) (word, rest string, quoted bool) {
	line = strings.TrimLeft(line, " \t")
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == '"' || c == '\'':
			n := strings.IndexByte(line[i+1:], c)
			if n < 0 {
				return word + line[i+1:], "", true
			}
			word, quoted = word+line[i+1:i+1+n], true
			i += n + 2
		case strings.IndexByte(";|&()<>", c) >= 0:
			if word != "" || quoted {
				return word, line[i:], quoted
			}
			n := 1
			for i+n < len(line) && line[i+n] == c {
				n++
			}
			return line[:n], line[n:], false
		case c == ' ' || c == '\t':
			return word, line[i:], quoted
		default:
			word += string(c)
			i++
		}
	}
	return word, "", quoted
}
