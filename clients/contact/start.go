package contact

import (
	"context"
	"time"

	"cartwheel.dev/clients/trace"
	"cartwheel.dev/geo-config/ids"
	"cartwheel.dev/node/protocol/method"
	"cartwheel.dev/node/wire"
	"google.golang.org/protobuf/proto"
)

// Start sends a request to a node that this client was introduced to, for an
// operation, and returns at once. False: nothing was sent. Otherwise then is
// called exactly once, as by wire.Host.Start, with the answer decoded into resp
// or with the error. The body is released when then returns.
func (c *Cluster) Start(to ids.Node, class wire.Class, m wire.Method, req, resp proto.Message, limit time.Duration,
	o *trace.Operation, then func(body []byte, err error)) bool {
	n, err := c.find(to)
	if err != nil || !n.introduced() {
		return false
	}
	mark, began := o.Begin(), time.Now()
	_, span := o.Call(context.Background(), method.Name(m))
	return c.host.Start(string(to), class, m, req, nil, limit, func(a *wire.Answer) {
		err := a.Err
		if err == nil {
			err = a.Decode(resp)
		}
		span.End(string(to), *n.site.Load(), err)
		n.count(o, mark, to, class, m, resp, a.Sizes, time.Since(began), err)
		c.answered(to, err)
		then(a.Body.Bytes(), err)
		a.Body.Release()
	}) == nil
}
