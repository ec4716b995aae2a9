package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/interlock-go/interlock/fallback"
	"github.com/interlock-go/interlock/ident"
	"github.com/interlock-go/interlock/middleware"
)

func ExampleNew() {
	down, healthy := does(fails(status(503))), does(says("an answer"))
	m, err := fallback.New(fallback.Config{Candidates: []fallback.Candidate{
		{Label: ident.MustLabel("primary"), Provider: fallback.ProviderOpenAI, ModelName: "gpt-4o", Model: down},
		{Label: ident.MustLabel("backup"), Provider: fallback.ProviderAnthropic, ModelName: "claude-sonnet-4", Model: healthy},
	}})
	if err != nil {
		fmt.Println(err)

		return
	}
	fmt.Println(m.Active())
	answer, err := llms.GenerateFromSinglePrompt(context.Background(), m, "a question")
	fmt.Println(answer, err)
	fmt.Println(m.Active())
	// Output:
	// primary
	// an answer <nil>
	// backup
}

func ExampleNew_invalid() {
	_, err := fallback.New(fallback.Config{Candidates: []fallback.Candidate{{Label: ident.MustLabel("primary")}}})
	fmt.Println(err)
	// Output: interlock: fallback: Candidates[0].Provider: not one of the providers
}

// Around stands inside of the fallback: it sees every attempt, with the candidate's label.
func ExampleConfig_around() {
	m, err := fallback.New(fallback.Config{NoRetry: true,
		Candidates: list(does(fails(status(503))), does(says("an answer"))),
		Around: func(next middleware.ModelHandler) middleware.ModelHandler {
			return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
				fmt.Println(call.Attempt(), call.Candidate())

				return next(ctx, call)
			}
		},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	outside := func(next middleware.ModelHandler) middleware.ModelHandler {
		return func(ctx context.Context, call *middleware.ModelCall) (*middleware.ModelResult, error) {
			fmt.Println("a call")

			return next(ctx, call)
		}
	}
	res, err := middleware.Chain(outside)(m.Handle)(context.Background(), middleware.NewModelCall(hello()))
	fmt.Println(res.Candidate, err)
	// Output:
	// a call
	// 1 primary
	// 2 backup
	// backup <nil>
}

func ExampleExhaustedError() {
	m, err := fallback.New(fallback.Config{NoRetry: true, Candidates: list(does(fails(status(503))), does(fails(errSecret)))})
	if err != nil {
		fmt.Println(err)

		return
	}
	_, err = m.GenerateContent(context.Background(), hello())
	fmt.Println(err)
	fmt.Println(errors.Is(err, middleware.ReasonExhausted), errors.Is(err, errSecret))
	if e, ok := errors.AsType[*fallback.ExhaustedError](err); ok {
		for _, a := range e.Attempts() {
			fmt.Println(a.Candidate, a.Class, a.Status)
		}
	}
	// Output:
	// interlock: fallback: exhausted: primary overloaded, backup unknown
	// true true
	// primary overloaded 503
	// backup unknown 0
}

func ExampleTransport() {
	client := &http.Client{Transport: &fallback.Transport{}}
	model, err := openai.New(openai.WithHTTPClient(client), openai.WithToken("key"))
	fmt.Println(model != nil, err)
	// Output: true <nil>
}

// A stream that breaks off is rescued, because the caller has seen nothing of it yet.
func ExampleBuffered() {
	m, err := fallback.New(fallback.Config{
		Candidates: list(does(streams(fails(errSecret), "half ", "an ")), does(streams(says("a whole answer"), "a whole ", "answer"))),
		Stream:     fallback.Buffered{MaxBytes: 64 << 10},
	})
	if err != nil {
		fmt.Println(err)

		return
	}
	_, err = m.GenerateContent(context.Background(), hello(), llms.WithStreamingFunc(func(_ context.Context, chunk []byte) error {
		fmt.Print(string(chunk))

		return nil
	}))
	fmt.Println("", err)
	// Output: a whole answer <nil>
}

// Who answered, and what it cost, for those who see only an llms.Model.
func ExampleWithReport() {
	m, err := fallback.New(fallback.Config{Candidates: list(does(fails(status(404))), does(says("an answer")))})
	if err != nil {
		fmt.Println(err)

		return
	}
	var report fallback.Report
	_, err = llms.GenerateFromSinglePrompt(fallback.WithReport(context.Background(), &report), m, "a question")
	fmt.Println(report.Candidate(), report.Total(), err)
	for _, a := range report.Attempts() {
		fmt.Println(a.Candidate, a.Class, a.Status)
	}
	// Output:
	// backup {2 3 2} <nil>
	// primary not_found 404
	// backup invalid 0
}
