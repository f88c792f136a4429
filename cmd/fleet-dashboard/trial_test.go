package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestATrialIsPassedByADashboardThatAnswersWhoComesByItsURL(t *testing.T) {
	pages := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "fleet.example.com" {
			http.Error(w, "another host", http.StatusMisdirectedRequest)
			return
		}
		http.Redirect(w, r, "https://id.example.com/authorize", http.StatusSeeOther)
	})
	for _, server := range []*httptest.Server{httptest.NewServer(pages), httptest.NewTLSServer(pages)} {
		assert.NoError(t, tryPages(t.Context(), server.URL, "fleet.example.com"))
		assert.ErrorContains(t, tryPages(t.Context(), server.URL, "other.example.com"), "answers 421 Misdirected Request to who comes by other.example.com")
		server.Close()
		assert.ErrorContains(t, tryPages(t.Context(), server.URL, "fleet.example.com"), "asking the dashboard")
	}
}
