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
	if status >= 200 && status < 300 {
		return nil // however long the answer is
	}
	if refused, content := isRefusal(status); refused {
		return &RefusedError{Why: why, Content: content}
	}
	if answer != nil && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		if after := retryAfter(answer.Header.Get("Retry-After"), now); after > 0 {
			return &RetryError{Why: why, After: after}
		}
	}
	return errors.New(why)
}

// isRefusal reports whether a status says that trying again is no use, and whether it is about what was sent.
func isRefusal(status int) (refused, content bool) {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true, true
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false, false
	default:
		return status >= 300 && status < 500, false
	}
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
