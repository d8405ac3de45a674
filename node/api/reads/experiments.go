package reads

import (
	"context"

	"cartwheel.dev/node/api/runs"
	"cartwheel.dev/node/api/view"
)

// ListExperiments lists the runs in the folder of the answering node.
func (s *Reads) ListExperiments(ctx context.Context, _ *view.None) (*view.Answer[runs.RunList], error) {
	list, err := s.runs.List(ctx)
	if err != nil {
		return nil, err
	}
	return &view.Answer[runs.RunList]{Body: list}, nil
}

type runInput struct {
	Run string `path:"run" maxLength:"255"`
}

// GetExperiment shows a run. Errors: NotFound.
func (s *Reads) GetExperiment(_ context.Context, in *runInput) (*view.Answer[runs.Run], error) {
	run, err := s.runs.Run(in.Run)
	if err != nil {
		return nil, err
	}
	return &view.Answer[runs.Run]{Body: run}, nil
}

type figureInput struct {
	Run  string `path:"run" maxLength:"255"`
	File string `path:"file" maxLength:"128"`
}

// FigureAnswer is a picture, which no page's script can be in.
type FigureAnswer struct {
	ContentType string `header:"Content-Type"`
	Policy      string `header:"Content-Security-Policy"`
	Body        []byte
}

// figurePolicy lets a picture be shown, and forbids scripts and requests in it.
const figurePolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'"

// GetFigure shows a picture of a run. Errors: NotFound.
func (s *Reads) GetFigure(_ context.Context, in *figureInput) (*FigureAnswer, error) {
	data, err := s.runs.Figure(in.Run, in.File)
	if err != nil {
		return nil, err
	}
	return &FigureAnswer{ContentType: "image/svg+xml", Policy: figurePolicy, Body: data}, nil
}
