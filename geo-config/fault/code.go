package fault

import "strings"

// Code is a kind as the admin API writes it: not_found.
func (k Kind) Code() string {
	return strings.NewReplacer(" ", "_", "/", "_", "-", "_").Replace(k.String())
}

// KindOfCode is the kind that a code is of, false where there is none.
func KindOfCode(code string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Code() == code {
			return k, true
		}
	}
	return Other, false
}
