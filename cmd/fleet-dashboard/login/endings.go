package login

import (
	"context"
	"crypto/sha256"
	"maps"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
)

// reviewEvery is how long a token counts as good without asking the hub again.
const reviewEvery = 2 * time.Minute

// endings are the sessions that were over before their time: the user has logged out, or the hub takes the token no longer. They are
// known to this process only.
type endings struct {
	mutex sync.Mutex
	// over has when a session would have ended, reviewed when the hub last took its token.
	over, reviewed map[sessionKey]time.Time
}

// sessionKey tells sessions apart, also those of one user.
type sessionKey [sha256.Size]byte

func keyOf(user session.Identity) sessionKey {
	return sha256.Sum256([]byte(strings.Join([]string{user.ID, user.Issuer, user.Subject, user.User, user.Token,
		user.Expires.UTC().Format(time.RFC3339Nano)}, "\x00")))
}

// end notes that a session is over.
func (e *endings) end(user session.Identity, now time.Time) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.over == nil {
		e.over = map[sessionKey]time.Time{}
	}
	maps.DeleteFunc(e.over, func(_ sessionKey, until time.Time) bool { return !now.Before(until) })
	e.over[keyOf(user)] = user.Expires
}

// ended reports whether a session is over.
func (e *endings) ended(user session.Identity) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	_, over := e.over[keyOf(user)]
	return over
}

// due reports whether the token of a session is to be reviewed, and takes it as reviewed.
func (e *endings) due(user session.Identity, now time.Time) bool {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if last, known := e.reviewed[keyOf(user)]; known && now.Sub(last) < reviewEvery {
		return false
	}
	if e.reviewed == nil {
		e.reviewed = map[sessionKey]time.Time{}
	}
	maps.DeleteFunc(e.reviewed, func(_ sessionKey, last time.Time) bool { return now.Sub(last) >= reviewEvery })
	e.reviewed[keyOf(user)] = now
	return true
}

// isOver reports whether a session has ended before its time. A hub that does not answer ends none.
func (s *SignedIn) isOver(ctx context.Context, user session.Identity) bool {
	switch now := s.Clock.Now(); {
	case s.endings.ended(user):
		return true
	case user.Token == "":
		return false
	case s.Tokens == nil:
		return true // tokens are not taken any more
	case !s.endings.due(user, now):
		return false
	}
	if _, err := s.Tokens(ctx, user.Token); apierrors.IsUnauthorized(err) {
		s.endings.end(user, s.Clock.Now())
		s.Log("the session of %s is over: the hub does not take the token any more", user.User)
		return true
	}
	return false
}
