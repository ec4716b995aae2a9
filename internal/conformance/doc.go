// Package conformance holds the one suite that every middleware of the library
// passes, whatever it does:
//
//	func TestConformance(t *testing.T) {
//		conformance.Tool(t, conformance.ToolSuite{
//			New: func(t *testing.T) middleware.ToolMiddleware { return gate(t).Tool() },
//			Run: func(t *testing.T) middleware.RunConfig { return middleware.RunConfig{Previewer: ctl} },
//		})
//	}
//
// It drives the middleware through the adapter that users have around it
// ([middleware.NewTool], [middleware.NewModel]) and looks at what an agent and
// the world would see: next is called at most once per attempt; results are not
// mixed up between concurrent calls; a panic or runtime.Goexit inside neither
// escapes nor leaves a permit behind; nothing happens under a context that is
// done, without a run, or in a run that has ended or is halted; a missing result
// or a missing next is an error; no error shows the text of its cause.
package conformance
