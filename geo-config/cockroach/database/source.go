package database

import (
	"net/url"
	"os"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// Variable is the environment variable that holds the database's URL.
const Variable = "CARTWHEEL_DATABASE"

// maxSourceBytes bounds the file with the URL.
const maxSourceBytes = 16 << 10

// Source finds the database's URL: in an option, in a file that an option names,
// or in Variable of the environment; "" if it is in none. Every user of a
// machine can read a command line, so an option's URL has no password.
func Source(option, file string, environ []string) (string, error) {
	const op fault.Op = "database.Source"
	switch {
	case option != "" && file != "":
		return "", fault.E(fault.Usage, op, "--database", "give either the URL or the file that holds it")
	case option != "":
		return option, withoutPassword(option)
	case file != "":
		return fromFile(file)
	}
	for i := len(environ) - 1; i >= 0; i-- { // the last one counts
		if value, ok := strings.CutPrefix(environ[i], Variable+"="); ok {
			return value, nil
		}
	}
	return "", nil
}

func withoutPassword(option string) error {
	u, err := url.Parse(option)
	if err != nil { // its text has the URL, and so perhaps a password
		return fault.E(fault.Invalid, "database.Source", "--database", "give the URL as postgresql://USER@HOST:PORT/DATABASE")
	}
	_, has := u.User.Password()
	if has || u.Query().Has("password") || u.Query().Has("sslpassword") {
		return fault.E(fault.Usage, "database.Source", "--database",
			"the URL has a password, which everybody on this machine could read: put the URL into a file of mode 0600 and give --database-file, or into "+Variable)
	}
	return nil
}

// fromFile reads the URL from a file that only its owner may read.
func fromFile(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", fault.FromOS("database.Source", file, err)
	}
	if info.Mode().Perm()&0o077 != 0 && !anyMode {
		return "", fault.E(fault.Permission, "database.Source", file, "others can read the database's URL: chmod 600 "+file)
	}
	if info.Size() > maxSourceBytes {
		return "", fault.Errorf(fault.TooLarge, "database.Source", file, "the file has to hold a URL and nothing else")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fault.FromOS("database.Source", file, err)
	}
	found := strings.TrimSpace(string(text))
	if found == "" || strings.ContainsAny(found, "\n\r") {
		return "", fault.E(fault.Invalid, "database.Source", file, "the file has to hold the database's URL on one line")
	}
	return found, nil
}
