package command

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"golang.org/x/term"

	"cartwheel.dev/geo-config/fault"
	"cartwheel.dev/node/people"
)

// newPassword reads a password from the first line of a file, or twice from the
// terminal.
func newPassword(e *env, file string) (string, error) {
	const op fault.Op = "command.newPassword"
	if file != "" {
		return passwordIn(file)
	}
	in := int(os.Stdin.Fd())
	if !term.IsTerminal(in) {
		return "", fault.E(fault.Usage, op, "standard input", "is no terminal: write the password into a file, and name it with --file")
	}
	var read [2]string
	for i, prompt := range []string{"New password: ", "The same again: "} {
		fmt.Fprint(e.stdio.Err, prompt)
		text, err := term.ReadPassword(in)
		fmt.Fprintln(e.stdio.Err)
		if err != nil {
			return "", fault.Wrap(fault.IO, op, "standard input", err)
		}
		read[i] = string(text)
	}
	if read[0] != read[1] {
		return "", fault.E(fault.Usage, op, "password", "the two are not the same: begin again")
	}
	return read[0], nil
}

func passwordIn(file string) (string, error) {
	const op fault.Op = "command.passwordIn"
	f, err := os.Open(file)
	if err != nil {
		return "", fault.FromOS(op, file, err)
	}
	defer f.Close()
	// One more than any password, so that a longer one is refused, not cut.
	text, err := io.ReadAll(io.LimitReader(f, people.MaxPassword+3))
	if err != nil {
		return "", fault.FromOS(op, file, err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return strings.TrimSuffix(string(line), "\r"), nil
}

// checkConsole checks the address of a console.
func checkConsole(console string) error {
	const op fault.Op = "command.checkConsole"
	if console == "" {
		return fault.E(fault.Usage, op, "--console", "is missing: say at which address people reach the console, such as https://console.example")
	}
	u, err := url.Parse(console)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return fault.E(fault.Usage, op, "--console", "is no address such as https://console.example")
	}
	return nil
}
