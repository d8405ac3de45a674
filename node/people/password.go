package people

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"cartwheel.dev/geo-config/fault"
)

// Bounds of a password. Its length is all that is asked for.
const (
	// MinPassword is in characters.
	MinPassword = 12
	// MaxPassword is in bytes.
	MaxPassword = 256
)

// Cost of one argon2id hash. It is stored with each hash, so that another cost
// holds for new passwords only.
type Cost struct {
	// MemoryKiB of one hash; default 64 MiB.
	MemoryKiB uint32
	// Passes over that memory; default 3.
	Passes uint32
	// Lanes is how many threads compute one hash; default 1.
	Lanes uint8
	// Parallel is how many hashes are computed at once, default 2. So signing in
	// takes no more memory than Parallel times MemoryKiB.
	Parallel int
	// Queue is how many more may wait, default 32. Others are refused as
	// overloaded.
	Queue int
}

func (c Cost) withDefaults() Cost {
	if c.MemoryKiB == 0 {
		c.MemoryKiB = 64 << 10
	}
	if c.Passes == 0 {
		c.Passes = 3
	}
	if c.Lanes == 0 {
		c.Lanes = 1
	}
	if c.Parallel == 0 {
		c.Parallel = 2
	}
	if c.Queue == 0 {
		c.Queue = 32
	}
	return c
}

// What a stored hash may ask for, so that a damaged one cannot take all memory.
const (
	maxMemoryKiB = 1 << 20
	maxPasses    = 64
	saltBytes    = 16
	sumBytes     = 32
)

// checkPassword checks a new password.
func checkPassword(password string) error {
	const op fault.Op = "people.checkPassword"
	switch {
	case !utf8.ValidString(password):
		return fault.E(fault.Invalid, op, "password", "is no text in UTF-8")
	case utf8.RuneCountInString(password) < MinPassword:
		return fault.Errorf(fault.Invalid, op, "password", "has fewer than %d characters: choose a longer one; nothing else matters", MinPassword)
	case len(password) > MaxPassword:
		return fault.Errorf(fault.Invalid, op, "password", "has more than %d bytes: choose a shorter one", MaxPassword)
	}
	return nil
}

// hasher computes hashes, some at a time.
type hasher struct {
	cost Cost
	rand io.Reader
	// waiting has a place for each that computes or waits, running for each that
	// computes.
	waiting, running chan struct{}
	// nobody is a hash that no password has, for names without one.
	nobody string
}

func newHasher(c Cost, random io.Reader) *hasher {
	h := &hasher{cost: c, rand: random, waiting: make(chan struct{}, c.Parallel+c.Queue), running: make(chan struct{}, c.Parallel)}
	h.nobody = spell(c, make([]byte, saltBytes), make([]byte, sumBytes))
	return h
}

// enter waits for the right to compute; leave gives it back.
func (h *hasher) enter(ctx context.Context) (leave func(), err error) {
	const op fault.Op = "people.enter"
	select {
	case h.waiting <- struct{}{}:
	default:
		return nil, fault.E(fault.Overloaded, op, "", "too many people sign in at once: try again in a few seconds")
	}
	select {
	case h.running <- struct{}{}:
		return func() { <-h.running; <-h.waiting }, nil
	case <-ctx.Done():
		<-h.waiting
		return nil, fault.Wrap(fault.Canceled, op, "", ctx.Err())
	}
}

// hash returns the text to store of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltBytes)
	if _, err := io.ReadFull(h.rand, salt); err != nil {
		return "", fault.Wrap(fault.IO, "people.hash", "", err)
	}
	leave, err := h.enter(ctx)
	if err != nil {
		return "", err
	}
	defer leave()
	c := h.cost
	return spell(c, salt, argon2.IDKey([]byte(password), salt, c.Passes, c.MemoryKiB, c.Lanes, sumBytes)), nil
}

// matches reports whether a password is that of a stored hash. An empty one
// matches nothing, and takes as long.
func (h *hasher) matches(ctx context.Context, stored, password string) (bool, error) {
	if stored == "" {
		stored = h.nobody
	}
	c, salt, sum, err := parse(stored)
	if err != nil {
		return false, err
	}
	leave, err := h.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	if len(password) > MaxPassword {
		password = "" // none has so many
	}
	got := argon2.IDKey([]byte(password), salt, c.Passes, c.MemoryKiB, c.Lanes, uint32(len(sum)))
	return subtle.ConstantTimeCompare(got, sum) == 1 && stored != h.nobody && password != "", nil
}

// spell writes a hash in the PHC form: $argon2id$v=19$m=...,t=...,p=...$salt$sum.
func spell(c Cost, salt, sum []byte) string {
	b := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, c.MemoryKiB, c.Passes, c.Lanes, b.EncodeToString(salt), b.EncodeToString(sum))
}

// parse reads what spell wrote.
func parse(text string) (c Cost, salt, sum []byte, err error) {
	const op fault.Op = "people.parse"
	bad := func(what string) (Cost, []byte, []byte, error) {
		return Cost{}, nil, nil, fault.E(fault.Corrupt, op, "hash of a password", what+": set the password again")
	}
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return bad("is not of argon2id")
	}
	var version int
	if _, err := fmt.Sscanf(parts[2], "v=%d", &version); err != nil || version != argon2.Version {
		return bad("is of another version of argon2")
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &c.MemoryKiB, &c.Passes, &c.Lanes); err != nil {
		return bad("has no cost")
	}
	if c.MemoryKiB == 0 || c.MemoryKiB > maxMemoryKiB || c.Passes == 0 || c.Passes > maxPasses || c.Lanes == 0 {
		return bad("has a cost beyond the limits")
	}
	salt, err = base64.RawStdEncoding.DecodeString(parts[4])
	if err != nil {
		return bad("has no salt")
	}
	sum, err = base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || len(sum) != sumBytes {
		return bad("has no sum")
	}
	return c, salt, sum, nil
}
