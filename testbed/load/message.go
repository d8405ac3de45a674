package load

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"net/mail"
	"os"
	"strconv"
	"strings"

	"cartwheel.dev/geo-config/fault"
)

// MailSizes are the sizes of messages in bytes: those of a list, or, where it is
// empty, log-normal ones.
type MailSizes struct {
	List []int
	Mean float64 // of the log-normal ones
}

// sizesSpread is the standard deviation of the sizes' logarithm. It was fitted to
// 4,327 real messages.
const sizesSpread = 0.693

// mostBytes bounds a message, so that one does not fill a slow line for minutes.
const mostBytes = 1 << 20

func (s MailSizes) draw(chance *rand.Rand) int {
	n := 0
	if len(s.List) > 0 {
		n = s.List[chance.IntN(len(s.List))]
	} else {
		n = int(math.Exp(math.Log(s.Mean) - sizesSpread*sizesSpread/2 + sizesSpread*chance.NormFloat64()))
	}
	return min(max(n, 1), mostBytes)
}

// ReadMailSizes reads sizes from a file: the first column of a table joined by
// commas. A first line that is no number is the table's head.
func ReadMailSizes(path string) ([]int, error) {
	const op fault.Op = "load.ReadMailSizes"
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.FromOS(op, path, err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = -1
	var out []int
	for line := 1; ; line++ {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fault.Wrap(fault.Usage, op, path, err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(row[0]))
		if err != nil && line == 1 {
			continue
		}
		if err != nil || n < 1 {
			return nil, fault.Errorf(fault.Usage, op, path, "line %d begins with %q, which is no size in bytes", line, row[0])
		}
		out = append(out, n)
	}
	if len(out) == 0 {
		return nil, fault.E(fault.Usage, op, path, "there is no size in this file")
	}
	return out, nil
}

const (
	bodyLine  = 72
	letters   = "abcdefghijklmnopqrstuvwxyz0123456789"
	idHost    = "@load" // what IDs of messages end with
	sumHeader = "X-Load-Sum"
)

// message makes a message with a body of about that many bytes. The ID fixes the
// body, so that a reader can tell whether it is what was sent.
func message(id, to string, size int) []byte {
	chance := rand.New(rand.NewPCG(seedOf(id), uint64(size)))
	var body bytes.Buffer
	for body.Len() < size {
		for range min(bodyLine, max(1, size-body.Len()-2)) {
			body.WriteByte(letters[chance.IntN(len(letters))])
		}
		body.WriteString("\r\n")
	}
	head := fmt.Sprintf("From: load@load\r\nTo: %s\r\nSubject: message %s\r\nMessage-ID: <%s%s>\r\n%s: %x\r\n\r\n", to, id, id, idHost, sumHeader, sum(body.Bytes()))
	return append([]byte(head), body.Bytes()...)
}

// seedOf makes a number of a name.
func seedOf(name string) uint64 { return sum([]byte(name)) }

// sum counts line ends as one byte each, because a maildir has them without CR.
func sum(body []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n"))) // it never fails
	return h.Sum64()
}

// parseMessage returns a message's ID, and whether its body is what was sent.
func parseMessage(text []byte) (id string, right bool, err error) {
	m, err := mail.ReadMessage(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		return "", false, err
	}
	body, err := io.ReadAll(m.Body)
	if err != nil {
		return "", false, err
	}
	id = strings.TrimSuffix(strings.Trim(m.Header.Get("Message-ID"), "<>"), idHost)
	return id, id != "" && m.Header.Get(sumHeader) == strconv.FormatUint(sum(body), 16), nil
}
