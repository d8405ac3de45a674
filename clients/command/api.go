package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"cartwheel.dev/clients/demo"
	"cartwheel.dev/geo-config/fault"
)

type apiCmd struct {
	Path   string `arg:"" help:"What is asked for: a path below /api/v1, with a query where it takes one, such as /slices?limit=10."`
	Method string `placeholder:"METHOD" help:"GET, POST, PUT, PATCH or DELETE (default: GET, and POST with --data)."`
	Data   string `placeholder:"JSON" help:"The body: JSON, or @FILE."`
	Key    string `placeholder:"KEY" help:"Idempotency key of a change: a repetition with the same one does nothing more."`
	Match  string `placeholder:"TAG" help:"Make the change only if the row still has this ETag (If-Match)."`
	At     string `placeholder:"URL" help:"Address of a node's admin API, such as http://127.0.0.1:7450 (default: $CARTWHEEL_API, or the first node of ./cartwheel-demo)."`
	Token  string `placeholder:"FILE" help:"File with the node's token, api.token in its data folder (default: $CARTWHEEL_API_TOKEN, or that of ./cartwheel-demo)."`
}

// Help shows how it is called.
func (apiCmd) Help() string {
	return help("cartwheel api /slices --at http://127.0.0.1:7450 --token /var/lib/cartwheel/api.token")
}

const (
	// apiLimit bounds one request; a stream of events goes on until it is interrupted.
	apiLimit = 30 * time.Second
	// maxAPIBody bounds what is sent, and maxAPIAnswer an answer.
	maxAPIBody, maxAPIAnswer = 64 << 10, 64 << 20
	apiBase                  = "/api/v1"
)

// Run asks a node's admin API, and prints what it answers.
func (c apiCmd) Run(e *env) error {
	ctx := e.ctx
	if !strings.HasPrefix(c.Path, "/events") {
		bounded, cancel := context.WithTimeout(ctx, apiLimit)
		defer cancel()
		ctx = bounded
	}
	r, err := c.request(ctx, e)
	if err != nil {
		return err
	}
	// A redirect would take the token elsewhere.
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	if err != nil {
		return unanswered(ctx, r.URL, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return refused(answer)
	}
	return show(e.stdio.Out, answer)
}

// request builds the request.
func (c apiCmd) request(ctx context.Context, e *env) (*http.Request, error) {
	const op fault.Op = "command.request"
	c.standard(e)
	at, err := c.address()
	if err != nil {
		return nil, err
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	method := c.Method
	switch {
	case method == "" && body != nil:
		method = http.MethodPost
	case method == "":
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, method, at, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Usage, op, c.Method, err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for name, value := range map[string]string{"Idempotency-Key": c.Key, "If-Match": c.Match} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// standard takes what was not given from the environment, and then from a demo that
// runs here.
func (c *apiCmd) standard(e *env) {
	c.At, c.Token = cmp.Or(c.At, e.getenv("CARTWHEEL_API")), cmp.Or(c.Token, e.getenv("CARTWHEEL_API_TOKEN"))
	if c.At != "" {
		return
	}
	if d, err := demo.Load("cartwheel-demo"); err == nil && len(d.Sites) > 0 {
		c.At, c.Token = d.Sites[0].API, cmp.Or(c.Token, d.Sites[0].APIToken)
	}
}

// address is the whole address of what is asked for.
func (c apiCmd) address() (string, error) {
	const op fault.Op = "command.address"
	if c.At == "" {
		return "", fault.E(fault.Usage, op, "--at", "is missing: give the address of a node's admin API, which the node's option --api sets, or set CARTWHEEL_API")
	}
	base, err := url.Parse(c.At)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return "", fault.E(fault.Usage, op, "--at", "is no address such as http://127.0.0.1:7450")
	}
	if base.Scheme == "http" && !isHere(base.Hostname()) {
		return "", fault.E(fault.Usage, op, base.Host, "would get the token over a network, in clear: use https, or run this on the node's machine")
	}
	asked, err := url.Parse(c.Path)
	if err != nil || !strings.HasPrefix(c.Path, "/") || asked.Host != "" {
		return "", fault.E(fault.Usage, op, c.Path, "is no path such as /slices: it begins behind "+apiBase)
	}
	base.Path, base.RawQuery = strings.TrimSuffix(base.Path, "/")+apiBase+strings.TrimPrefix(asked.Path, apiBase), asked.RawQuery
	return base.String(), nil
}

// isHere reports whether a host is this machine.
func isHere(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// token reads the node's token.
func (c apiCmd) token() (string, error) {
	const op fault.Op = "command.token"
	if c.Token == "" {
		return "", fault.E(fault.Usage, op, "--token", "is missing: name the file api.token in the node's data folder, or set CARTWHEEL_API_TOKEN to its path")
	}
	data, err := os.ReadFile(c.Token)
	if err != nil {
		return "", fault.FromOS(op, c.Token, err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsAny(token, " \r\n") {
		return "", fault.E(fault.Invalid, op, c.Token, "holds no token: name the file api.token in the node's data folder")
	}
	return token, nil
}

// body is what is sent; nil: nothing.
func (c apiCmd) body() ([]byte, error) {
	const op fault.Op = "command.body"
	var data []byte
	var err error
	switch file, isFile := strings.CutPrefix(c.Data, "@"); {
	case c.Data == "":
		return nil, nil
	case isFile:
		data, err = os.ReadFile(file)
	default:
		data = []byte(c.Data)
	}
	switch {
	case err != nil:
		return nil, fault.FromOS(op, "--data", err)
	case len(data) > maxAPIBody:
		return nil, fault.Errorf(fault.TooLarge, op, "--data", "has over %d bytes", maxAPIBody)
	case !json.Valid(data):
		return nil, fault.E(fault.Usage, op, "--data", "is no JSON; @FILE reads a file")
	}
	return data, nil
}

// unanswered is the error of a request that got no answer.
func unanswered(ctx context.Context, at *url.URL, err error) error {
	const op fault.Op = "command.unanswered"
	var refused *net.OpError
	switch {
	case ctx.Err() != nil:
		return fault.Wrap(fault.TimedOut, op, at.Host, ctx.Err())
	case errors.As(err, &refused):
		return &fault.Error{Kind: fault.Unreachable, Op: op, Subject: at.Host, Public: "nothing answers there: check the address, and that the node runs with --api", Cause: err}
	}
	return fault.Wrap(fault.Unreachable, op, at.Host, err)
}

// refused is the error that an answer describes, as RFC 9457 has it.
func refused(answer *http.Response) error {
	const op fault.Op = "command.refused"
	var p struct {
		Detail  string `json:"detail"`
		Code    string `json:"code"`
		Subject string `json:"subject"`
		Remedy  string `json:"remedy"`
		Fields  []struct {
			Location string `json:"location"`
			Message  string `json:"message"`
		} `json:"fields"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxAPIAnswer)).Decode(&p); err != nil || p.Detail == "" {
		return fault.E(fault.Other, op, answer.Request.URL.Host, "answers "+answer.Status+": is it a node's admin API?")
	}
	kind, _ := fault.KindOfCode(p.Code)
	said := p.Detail
	for _, f := range p.Fields {
		said += "; " + f.Location + ": " + f.Message
	}
	if p.Remedy != "" {
		said += ". " + p.Remedy
	}
	return fault.E(kind, op, "", said)
}

// show prints an answer: JSON indented, events as they come.
func show(out io.Writer, answer *http.Response) error {
	const op fault.Op = "command.show"
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != "application/json" {
		_, err := io.Copy(out, answer.Body)
		return fault.Wrap(fault.IO, op, "", err)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, maxAPIAnswer+1))
	switch {
	case err != nil:
		return fault.Wrap(fault.Unreachable, op, answer.Request.URL.Host, err)
	case len(data) > maxAPIAnswer:
		return fault.Errorf(fault.TooLarge, op, "", "the answer has over %d bytes: ask for less at once with limit", maxAPIAnswer)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, data, "", "  "); err != nil {
		return fault.Wrap(fault.Corrupt, op, answer.Request.URL.Host, err)
	}
	_, err = text.WriteTo(out)
	return fault.Wrap(fault.IO, op, "", err)
}
