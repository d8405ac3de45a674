package command

import (
	"os"
	"path/filepath"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// ourWords drops the program's name. Called as mount(8)'s helper, by the name
// mount.cartwheel, it turns `WHAT WHERE -o options` into our words: to the
// background, as mount(8) expects, unless -f or -d say otherwise.
func ourWords(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	if name := filepath.Base(argv[0]); !strings.HasPrefix(name, "mount.cartwheel") && !strings.HasPrefix(name, "mount.fuse.cartwheel") {
		return argv[1:]
	}
	words, background := []string{"mount"}, true
	for rest := argv[1:]; len(rest) > 0; rest = rest[1:] {
		switch w := rest[0]; {
		case w == "-V":
			return []string{"version"}
		case w == "-h":
			words = append(words, "--help")
		case w == "-t" || w == "-N":
			if len(rest) > 1 {
				rest = rest[1:]
			}
		case len(w) > 1 && strings.Trim(w[1:], "fdrsnvwi") == "" && w[0] == '-':
			// s, n, v, w and i are of mount(8) itself
			if strings.ContainsAny(w, "fd") {
				background = false
			}
			if strings.Contains(w, "d") {
				words = append(words, "--debug")
			}
			if strings.Contains(w, "r") {
				words = append(words, "--read-only")
			}
		default:
			words = append(words, w)
		}
	}
	if background {
		words = append(words, "--daemon")
	}
	return words
}

// meaning says what becomes of a word of -o that is no flag of ours by its name.
type meaning struct {
	flag    string // instead
	refused string // why there is no such thing
}

// meanings are the words that fstab and mount(8) put into -o. The empty meaning
// is that there is nothing to do.
var meanings = map[string]meaning{ //nolint:gochecknoglobals // a table, never changed
	"rw": {}, "nosuid": {}, "nodev": {}, "noatime": {}, "relatime": {}, "nodiratime": {}, "auto": {}, "noauto": {}, "user": {}, "users": {},
	"nouser": {}, "owner": {}, "group": {}, "nofail": {}, "_netdev": {}, "defaults": {}, "async": {}, "exec": {}, "default-permissions": {},
	"subtype": {}, "volname": {}, "comment": {}, "hard-remove": {}, "big-writes": {}, "nonempty": {},
	"ro": {flag: "--read-only"}, "noexec": {flag: "--no-exec"}, "config": {flag: "--contact"}, "max-readahead": {flag: "--kernel-read-ahead"},
	"allow-root":       {refused: "mount as root, or use allow_other: permissions are checked by the nodes"},
	"uid":              {refused: "owners are those of the tree, the same at every site"},
	"gid":              {refused: "groups are those of the tree, the same at every site"},
	"umask":            {refused: "modes are those of the tree, the same at every site"},
	"fmask":            {refused: "modes are those of the tree, the same at every site"},
	"dmask":            {refused: "modes are those of the tree, the same at every site"},
	"noxattr":          {refused: "ACLs and cues need extended attributes"},
	"sync":             {refused: "close and fsync wait for the nodes already; .SyncLevel says how many"},
	"remount":          {refused: "unmount and mount again"},
	"max-read":         {refused: "the kernel and the mount agree on the largest read"},
	"attr-timeout":     {refused: "leases say how long attributes are cached"},
	"entry-timeout":    {refused: "leases say how long names are cached"},
	"negative-timeout": {refused: "leases say how long missing names are cached"},
	"subdir":           {refused: "the whole tree is mounted; use a bind mount of the part"},
}

// spell turns the texts behind -o, as mount(8) hands them over, into flags:
// key_name=value is --key-name=value. Commas inside double quotes do not
// separate. env.NAME=value sets a variable of the environment.
func (e *env) spell(texts []string) ([]string, error) {
	var flags []string
	for _, text := range texts {
		for _, word := range splitQuoted(text) {
			key, value, valued := strings.Cut(word, "=")
			if name, ok := strings.CutPrefix(key, "env."); ok {
				if err := e.setenv(name, value); err != nil {
					return nil, err
				}
				continue
			}
			key = strings.ReplaceAll(key, "_", "-")
			if key == "-netdev" {
				key = "_netdev"
			}
			m, known := meanings[key]
			switch {
			case word == "", strings.HasPrefix(key, "x-"), known && m == meaning{}:
				continue
			case m.refused != "":
				return nil, fault.E(fault.NotSupported, "command.mount", "-o "+word, m.refused)
			case m.flag != "":
				key = m.flag
			default:
				key = "--" + key
			}
			if valued {
				key += "=" + value
			}
			flags = append(flags, key)
		}
	}
	return flags, nil
}

func (e *env) setenv(name, value string) error {
	if err := os.Setenv(name, value); err != nil {
		return fault.E(fault.Usage, "command.mount", "-o env."+name, "is no name of a variable")
	}
	e.stdio.Environ = append([]string{name + "=" + value}, e.stdio.Environ...)
	return nil
}

// without takes the words of -o away, which have become flags.
func without(words, texts []string) []string {
	var out []string
	n := 0
	for i := 0; i < len(words); i++ {
		w := words[i]
		if n < len(texts) {
			switch text := texts[n]; {
			case (w == "-o" || w == "--options") && i+1 < len(words) && words[i+1] == text:
				i++
				n++
				continue
			case w == "-o"+text, w == "-o="+text, w == "--options="+text:
				n++
				continue
			}
		}
		out = append(out, w)
	}
	return out
}

func splitQuoted(text string) []string {
	var out []string
	var word strings.Builder
	quoted := false
	for _, r := range text {
		switch {
		case r == '"':
			quoted = !quoted
		case r == ',' && !quoted:
			out = append(out, word.String())
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return append(out, word.String())
}
