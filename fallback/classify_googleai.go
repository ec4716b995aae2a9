package fallback

import (
	"errors"
	"net/http"
	"reflect"
	"regexp"
	"time"
)

// googleaiRoom: a status is read by its method; the text is for errors that lost their type on the way.
var googleaiRoom = room{ //nolint:gochecknoglobals // compiled table
	status: regexp.MustCompile(`(?s)^(?:error in stream mode: )?googleapi: Error (\d{3}): ?(.*)$`),
	messages: append([]form{
		says(ClassContextLength, `The input token count \(?\d+\)? exceeds the maximum`),
		says(ClassAuth, `API key not valid|API key expired|User location is not supported`), // all of them 400
	}, openaiMessages...),
	sentences: []form{
		says(ClassContentFilter, `(?:error in stream mode: )?blocked: (?:candidate|prompt): `),
		says(ClassBadResponse, `no content in generation response$|proto:|expect single candidate in stream mode; got |`+
			`error in stream mode: unexpected opening token`),
	},
}

// retryAfterOf reads how long a provider asks to wait from the error of a client that keeps the header, without its
// types: by a method, or by a field of the name and type that googleapi's error has.
func retryAfterOf(err error) time.Duration {
	if typed, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		return min(max(typed.RetryAfter(), 0), maxRetryAfter)
	}
	var found time.Duration
	walkChain(err, func(e error) bool {
		if h := headerOf(e); h != nil {
			found = retryAfter(h.Get("Retry-After"), time.Now())
		}

		return found == 0
	})

	return found
}

func headerOf(err error) http.Header {
	v := reflect.ValueOf(err)
	if v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	f := v.FieldByName("Header")
	if !f.IsValid() || !f.CanInterface() {
		return nil
	}
	h, _ := reflect.TypeAssert[http.Header](f)

	return h
}

// maxChain bounds how deep the chain of an error is followed.
const maxChain = 32

// walkChain follows the causes of err, as errors.Is does, until f has seen enough.
func walkChain(err error, f func(error) bool) {
	for range maxChain {
		if err == nil || !f(err) {
			return
		}
		err = errors.Unwrap(err)
	}
}
