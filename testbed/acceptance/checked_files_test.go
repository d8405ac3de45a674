package acceptance

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// letters are the names in each directory.
const letters = "abc"

// anyOf picks a name.
func (p *checkedProgram) anyOf(kind string) string {
	return fmt.Sprintf("%s%d/%c", kind, p.chance.IntN(2), letters[p.chance.IntN(len(letters))])
}

// contentOf is what a file with an ID holds.
func contentOf(id string, n int) string {
	return id + "\n" + strings.Repeat(id+" ", n) + "\n" + id + "\n"
}

// idOf returns the ID that a whole file tells, or an error if it is not whole.
func idOf(content []byte) (string, error) {
	first, rest, _ := bytes.Cut(content, []byte("\n"))
	body, last, _ := bytes.Cut(rest, []byte("\n"))
	id := string(first)
	if id == "" || string(last) != id+"\n" || len(body)%(len(id)+1) != 0 || string(body) != strings.Repeat(id+" ", len(body)/(len(id)+1)) {
		return "", fmt.Errorf("a file that is whole under no name: %d bytes, from %.40q to %q", len(content), content, content[max(0, len(content)-40):])
	}
	return id, nil
}

// fresh makes a file under a name of this program's own.
func (p *checkedProgram) fresh() (id, path, content string, err error) {
	id, path = p.own()
	content = contentOf(id, 1+p.chance.IntN(1+p.chance.IntN(12000)))
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o644)
	if err != nil {
		return "", "", "", err
	}
	_, err = f.WriteString(content)
	if err == nil && p.chance.IntN(2) == 0 {
		err = f.Sync()
	}
	return id, path, content, errors.Join(err, f.Close())
}

// put replaces what a name has by a new file.
func (p *checkedProgram) put() error {
	id, path, _, err := p.fresh()
	if err != nil {
		return err
	}
	at := p.anyOf("names")
	_, err = p.do(event{What: didPut, At: at, ID: id}, nil, func() error { return syscall.Rename(path, p.path(at)) })
	return err
}

// link gives a new file a name that is free.
func (p *checkedProgram) link() error {
	id, path, _, err := p.fresh()
	if err != nil {
		return err
	}
	at := p.anyOf("names")
	_, err = p.do(event{What: didLink, At: at, ID: id}, takenOnly, func() error { return syscall.Link(path, p.path(at)) })
	return errors.Join(err, syscall.Unlink(path))
}

func (p *checkedProgram) move() error {
	from, to := p.anyOf("names"), p.anyOf("names")
	if from == to {
		return nil
	}
	_, err := p.do(event{What: didMove, At: from, To: to}, missingOnly, func() error { return syscall.Rename(p.path(from), p.path(to)) })
	return err
}

func (p *checkedProgram) take() error {
	at := p.anyOf("names")
	_, err := p.do(event{What: didTake, At: at}, missingOnly, func() error { return syscall.Unlink(p.path(at)) })
	return err
}

// find opens a name and reads what is there. It may keep the file open.
func (p *checkedProgram) find() error {
	at := p.anyOf("names")
	e := event{What: didFind, At: at, Begin: now()}
	f, err := os.Open(p.path(at))
	e.End = now()
	if e.Result, err = result(err, missingOnly); err != nil {
		return err
	}
	if f == nil {
		p.say(e)
		return nil
	}
	content, err := io.ReadAll(f)
	if err == nil {
		e.ID, err = idOf(content)
	}
	if err != nil {
		f.Close()
		return fmt.Errorf("read of %s: %w", at, err)
	}
	p.say(e)
	if p.chance.IntN(2) == 0 {
		return f.Close()
	}
	p.held = append(p.held, heldFile{f, string(content), e})
	if len(p.held) > 6 {
		err = p.held[0].f.Close()
		p.held = p.held[1:]
	}
	return err
}

// again reads what is held open. Its name may be gone or another file's.
func (p *checkedProgram) again() error {
	var kept []heldFile
	for _, h := range p.held {
		err := h.check()
		if errors.Is(err, syscall.ESTALE) {
			h.found.What, h.found.Lost = didLose, now()
			p.say(h.found)
			err = h.f.Close()
		} else {
			kept = append(kept, h)
		}
		if err != nil {
			return err
		}
	}
	p.held = kept
	return nil
}

func (h *heldFile) check() error {
	info, err := h.f.Stat()
	if err != nil {
		return fmt.Errorf("stat of an open file: %w", err)
	}
	if info.Size() != int64(len(h.content)) {
		return fmt.Errorf("an open file has %d bytes, it had %d", info.Size(), len(h.content))
	}
	got := make([]byte, len(h.content))
	if _, err := h.f.ReadAt(got, 0); err != nil {
		return fmt.Errorf("read of an open file: %w", err)
	}
	if string(got) != h.content {
		return fmt.Errorf("an open file changed: it begins with %.40q, it began with %.40q", got, h.content)
	}
	return nil
}

func (p *checkedProgram) list() error {
	e := event{What: didList, At: "names0", Begin: now()}
	if p.chance.IntN(2) == 0 {
		e.At = "names1"
	}
	entries, err := os.ReadDir(p.path(e.At))
	e.End = now()
	for _, entry := range entries {
		e.Names = append(e.Names, e.At+"/"+entry.Name())
	}
	if err == nil {
		p.say(e)
	}
	return err
}

// logs are the files that all append to. Each has one of two names.
var logs = []string{"log0", "log1"}

// openLog opens a log under the name that it has now.
func (p *checkedProgram) openLog(log string, flags int) (*os.File, error) {
	for {
		for _, name := range []string{"here", "there"} {
			f, err := os.OpenFile(p.path("logs", log+"."+name), flags, 0)
			if r, err := result(err, missingOnly); err != nil || r == "" {
				return f, err
			}
		}
	}
}

// moveLog renames a log, which others hold open.
func (p *checkedProgram) moveLog() error {
	log := p.path("logs", logs[p.chance.IntN(len(logs))])
	from, to := log+".here", log+".there"
	if p.chance.IntN(2) == 0 {
		from, to = to, from
	}
	_, err := result(syscall.Rename(from, to), missingOnly)
	return err
}

// append adds lines to a log. They are there for others at the latest when the
// file was closed or synced.
func (p *checkedProgram) append() error {
	log := logs[p.chance.IntN(len(logs))]
	f := p.logs[log]
	var err error
	if f == nil {
		if f, err = p.openLog(log, os.O_WRONLY|os.O_APPEND); err != nil {
			return err
		}
	}
	e := event{What: didAppend, At: log, Begin: now()}
	for range 1 + p.chance.IntN(3) {
		line := fmt.Sprintf("%d %d %s\n", p.Number, p.lines[log], strings.Repeat("x", p.chance.IntN(1+p.chance.IntN(600))))
		p.lines[log]++
		e.Lines = append(e.Lines, line)
		if n, err := f.WriteString(line); err != nil {
			return fmt.Errorf("append of %d bytes, %d done: %w", len(line), n, err)
		}
	}
	if p.chance.IntN(3) == 0 {
		err = f.Close()
		delete(p.logs, log)
	} else {
		err = f.Sync()
		p.logs[log] = f
	}
	if err != nil {
		return fmt.Errorf("sync or close of a log: %w", err)
	}
	e.End = now()
	p.say(e)
	return nil
}

// readLog reads all of a log.
func (p *checkedProgram) readLog() error {
	e := event{What: didRead, At: logs[p.chance.IntN(len(logs))], Begin: now()}
	f, err := p.openLog(e.At, os.O_RDONLY)
	if err != nil {
		return err
	}
	content, err := io.ReadAll(f)
	e.ID, e.End = string(content), now()
	if err = errors.Join(err, f.Close()); err == nil {
		p.say(e)
	}
	return err
}

// closeAll closes what is open.
func (p *checkedProgram) closeAll() (err error) {
	for _, f := range p.logs {
		err = errors.Join(err, f.Close())
	}
	for _, h := range p.held {
		err = errors.Join(err, h.f.Close())
	}
	return err
}
