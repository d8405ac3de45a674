package command

import (
	"encoding/json"
	"fmt"
	"io"

	"cartwheel.dev/geo-config/fault"
	"github.com/alecthomas/kong"
)

// Program is what the command lines of Cartwheel have in common: a grammar, a
// pointer to a struct as kong wants it, with a name and a sentence.
type Program struct {
	Name, About string
	Grammar     any
	Out, Err    io.Writer
}

// helpShown ends parsing after --help.
type helpShown struct{}

// Parser returns the program's parser.
func (p Program) Parser() (*kong.Kong, error) {
	return kong.New(p.Grammar, kong.Name(p.Name), kong.Description(p.About),
		kong.Writers(p.Out, p.Err), kong.Exit(func(int) { panic(helpShown{}) }), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
}

// Parse reads the words behind the program's name into its grammar. It returns
// nil and no error where they asked for help, which has been printed. Words
// that are wrong are a fault of kind Usage.
func (p Program) Parse(words []string) (parsed *kong.Context, err error) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(helpShown); !ok {
				panic(r)
			}
			parsed, err = nil, nil
		}
	}()
	parser, err := p.Parser()
	if err != nil {
		return nil, fault.Wrap(fault.Other, "command.parse", "", err)
	}
	if parsed, err = parser.Parse(words); err != nil {
		return nil, fault.E(fault.Usage, "", "", fmt.Sprintf("%v (`%s --help` lists commands, `%[2]s COMMAND --help` options)", err, p.Name))
	}
	return parsed, nil
}

// WriteJSON writes v as people can read it, too.
func WriteJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
