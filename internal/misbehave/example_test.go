package misbehave_test

import (
	"context"
	"fmt"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"github.com/interlock-go/interlock/internal/misbehave"
)

func ExampleStart() {
	srv, err := misbehave.Start(misbehave.Config{Script: misbehave.Replies(
		misbehave.Reply{Status: 503, Headers: map[string]string{"Retry-After": "2"}},
		misbehave.Reply{Text: "It is raining."},
	)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	model, err := openai.New(openai.WithBaseURL(srv.URL()+"/v1"), openai.WithToken("t"), openai.WithModel("m"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		answer, err := llms.GenerateFromSinglePrompt(context.Background(), model, "Weather in Oslo?")
		fmt.Println(answer, err)
	}
	for _, r := range srv.Requests() {
		fmt.Println(r.Index, r.Vendor, r.Last().Text, r.Answer)
	}
	// Output:
	//  API returned unexpected status code: 503: The engine is currently overloaded, please try again later.
	// It is raining. <nil>
	// 0 openai Weather in Oslo? status
	// 1 openai Weather in Oslo? scripted
}
