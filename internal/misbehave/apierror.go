package misbehave

import (
	"cmp"
	"fmt"
	"net/http"
)

// statusOverloaded is Anthropic's own status for an overloaded service.
const statusOverloaded = 529

// errorBody is an error in the vendor's shape, filled with what fits the status where e says nothing.
func errorBody(vendor Vendor, status int, e *APIError) string {
	var said APIError
	if e != nil {
		said = *e
	}
	if vendor == VendorAnthropic {
		usual := anthropicError(status)
		return fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s},"request_id":"req_misbehave"}`,
			quote(cmp.Or(said.Type, usual.Type)), quote(cmp.Or(said.Message, usual.Message)))
	}
	usual := openaiError(status)
	code := "null"
	if c := cmp.Or(said.Code, usual.Code); c != "" {
		code = quote(c)
	}
	return fmt.Sprintf(`{"error":{"message":%s,"type":%s,"param":null,"code":%s}}`,
		quote(cmp.Or(said.Message, usual.Message)), quote(cmp.Or(said.Type, usual.Type)), code)
}

func openaiError(status int) APIError {
	switch status {
	case http.StatusUnauthorized:
		return APIError{"invalid_request_error", "invalid_api_key", "Incorrect API key provided."}
	case http.StatusForbidden:
		return APIError{"invalid_request_error", "unsupported_country_region_territory", "Country, region, or territory not supported"}
	case http.StatusNotFound:
		return APIError{"invalid_request_error", "model_not_found", "The model does not exist or you do not have access to it."}
	case http.StatusTooManyRequests:
		return APIError{"requests", "rate_limit_exceeded", "Rate limit reached for requests."}
	case http.StatusServiceUnavailable:
		return APIError{"server_error", "", "The engine is currently overloaded, please try again later."}
	}
	if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return APIError{"invalid_request_error", "", "Invalid request."}
	}
	return APIError{"server_error", "", "The server had an error while processing your request. Sorry about that!"}
}

func anthropicError(status int) APIError {
	switch status {
	case http.StatusUnauthorized:
		return APIError{"authentication_error", "", "invalid x-api-key"}
	case http.StatusForbidden:
		return APIError{"permission_error", "", "Your API key does not have permission to use the specified resource."}
	case http.StatusNotFound:
		return APIError{"not_found_error", "", "The requested resource could not be found."}
	case http.StatusRequestEntityTooLarge:
		return APIError{"request_too_large", "", "Request exceeds the maximum allowed number of bytes."}
	case http.StatusTooManyRequests:
		return APIError{"rate_limit_error", "", "Number of request tokens has exceeded your rate limit."}
	case statusOverloaded:
		return APIError{"overloaded_error", "", "Overloaded"}
	}
	if status >= http.StatusBadRequest && status < http.StatusInternalServerError {
		return APIError{"invalid_request_error", "", "Invalid request."}
	}
	return APIError{"api_error", "", "Internal server error"}
}
