package historytest

import "context"

// one runs one operation of the mix.
func (a *actor) one(ctx context.Context) {
	if a.onceDir != 0 && a.rand.IntN(2) == 0 {
		a.once(ctx)
		return
	}
	f := registers()[a.rand.IntN(len(registers()))]
	at, to := a.near(), a.near()
	switch n := a.rand.IntN(100); {
	case n < 20:
		a.read(ctx, f)
	case n < 32:
		a.lookup(ctx, at)
	case n < 38:
		a.list(ctx, a.rand.IntN(dirs))
	case n < 44:
		a.readLog(ctx)
	case n < 60:
		a.write(ctx, f, a.rand.IntN(f.ranges))
	case n < 68:
		a.append(ctx)
	case n < 79:
		a.create(ctx, at)
	case n < 84:
		a.unlink(ctx, at)
	case n < 90:
		a.rename(ctx, at, to)
	case n < 94:
		a.link(ctx, at)
	default:
		a.batch(ctx, at)
	}
}
