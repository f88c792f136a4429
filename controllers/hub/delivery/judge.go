package delivery

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fleetflow/fleetflow/activities/outbound"
)

// Bounds are those of a call of a destination.
func Bounds() outbound.Bounds {
	return outbound.Bounds{Timeout: sendTimeout, MaxBytes: maxAnswer}
}

const (
	// MaxWords is how much is kept of what a destination says.
	MaxWords = 128
	// maxAnswer is how much of an answer is read.
	maxAnswer = 64 << 10
)

// Judge returns what an answer of a destination to a POST comes to: nil if it has taken what was sent. Of names what has answered, for
// people.
func Judge(of string, answer *outbound.Answer, failure *outbound.Failure, now time.Time) error {
	status := 0
	why := ""
	switch {
	case failure != nil && failure.Status == 0:
		return errors.New(failure.Text)
	case failure != nil:
		status = failure.Status
		why = failure.Text
	default:
		status = answer.Status
		why = fmt.Sprintf("%s answers %d", of, status)
		if said := answer.Words(strings.TrimSpace(string(answer.Body)), MaxWords); said != "" {
			why += ": " + said
		}
	}
	switch {
	case status >= 200 && status < 300:
		return nil // however long the answer is
	case status >= 300 && status < 400:
		return &RefusedError{Why: why}
	case status == http.StatusTooManyRequests, status == http.StatusServiceUnavailable:
		if answer != nil {
			if after := retryAfter(answer.Header.Get("Retry-After"), now); after > 0 {
				return &RetryError{Why: why, After: after}
			}
		}
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		return &RefusedError{Why: why, Content: true}
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
	case status >= 400 && status < 500:
		return &RefusedError{Why: why}
	}
	return errors.New(why)
}

// retryAfter reads for how long a server asks to be left alone: seconds, or a time; 0 if it does not.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(min(max(seconds, 0), int(longestAsked/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return max(at.Sub(now), 0)
}
