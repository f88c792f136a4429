package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fleetflow/fleetflow/cmd/fleet-dashboard/session"
)

func TestATokenThatTheHubDoesNotTakeAnyMoreEndsItsSession(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	asked := 0
	answer := error(nil)
	s := &SignedIn{
		Clock: clk, Log: func(string, ...any) {},
		Tokens: func(context.Context, string) (session.Identity, error) { asked++; return session.Identity{}, answer },
	}
	user := session.Identity{User: "system:serviceaccount:team:ci", Token: "t", Expires: clk.Now().Add(12 * time.Hour)}
	assert.False(t, s.isOver(t.Context(), user))
	answer = fmt.Errorf("asking the hub: %w", apierrors.NewUnauthorized("gone"))
	assert.False(t, s.isOver(t.Context(), user))
	assert.Equal(t, 1, asked, "it was good a moment ago")

	clk.Step(reviewEvery)
	answer = errors.New("connection refused")
	assert.False(t, s.isOver(t.Context(), user), "a hub that does not answer says nothing of a token")
	clk.Step(reviewEvery)
	answer = fmt.Errorf("asking the hub: %w", apierrors.NewUnauthorized("gone"))
	assert.True(t, s.isOver(t.Context(), user))
	answer = nil
	assert.True(t, s.isOver(t.Context(), user), "what is over stays so")
	assert.Equal(t, 3, asked)

	other := user
	other.Expires = clk.Now().Add(12 * time.Hour)
	assert.False(t, s.isOver(t.Context(), other), "a later session of the same user is another one")
	s.Tokens = nil
	assert.True(t, s.isOver(t.Context(), other), "tokens are not taken any more")
}

func TestACopiedCookieIsNoGoodAfterTheLogout(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	s := &SignedIn{Clock: clk, Log: func(string, ...any) {}}
	user := session.Identity{Issuer: "https://id.example.com", Subject: "7", User: "alf", Expires: clk.Now().Add(time.Hour)}
	assert.False(t, s.isOver(t.Context(), user))
	s.endings.end(user, clk.Now())
	assert.True(t, s.isOver(t.Context(), user))
	other := user
	other.Expires = other.Expires.Add(time.Second)
	assert.False(t, s.isOver(t.Context(), other), "the session in another browser goes on")

	clk.Step(2 * time.Hour)
	s.endings.end(other, clk.Now())
	assert.Len(t, s.endings.over, 1, "what would have ended anyhow is forgotten")
}

// A provider may have all its ID tokens end with the session that the user has there.
func TestALogoutEndsOneOfTwoSessionsThatWouldEndTogether(t *testing.T) {
	clk := clocktesting.NewFakeClock(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "key"), []byte(strings.Repeat("k", 32)), 0o600))
	s := &SignedIn{Clock: clk, Log: func(string, ...any) {}, Cookies: &session.Cookies{Sealer: &session.Sealer{Folder: folder, Clock: clk}}}
	logIn := func() session.Identity {
		answer := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
		require.NoError(t, s.Cookies.Start(answer, session.Identity{Issuer: "https://id.example.com", Subject: "7", User: "alf", Expires: clk.Now().Add(time.Hour)}))
		request.AddCookie(answer.Result().Cookies()[0])
		user, is := s.Cookies.Session(request)
		require.True(t, is)
		return user
	}
	first := logIn()
	second := logIn()
	s.endings.end(first, clk.Now())
	assert.True(t, s.isOver(t.Context(), first))
	assert.False(t, s.isOver(t.Context(), second), "who logs out and in again is in")
}
