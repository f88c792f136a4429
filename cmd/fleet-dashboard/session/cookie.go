package session

import (
	"errors"
	"net/http"
	"time"
)

// maxCookie is how long a cookie may be: browsers and proxies drop longer ones, at about 4,096 bytes with their names.
const maxCookie = 3500

// ErrTooLarge means that a user has so many groups that no cookie can keep them.
var ErrTooLarge = errors.New("your groups are too many for a cookie: narrow --oidc-keep-groups (oidc.keepGroups of the chart) to those that have rights on the hub")

// Cookies keep the sessions of users in their browsers, so that any number of dashboards can serve them.
type Cookies struct {
	Sealer *Sealer
	// Insecure lets the browser send them in plain text.
	Insecure bool
}

// sessionName is the name of the cookie with the session, after the prefix.
const sessionName = "fleet"

// prefix has the browser take a cookie from this host and by TLS only.
func (c *Cookies) prefix() string {
	if c.Insecure {
		return ""
	}
	return "__Host-"
}

func (c *Cookies) set(w http.ResponseWriter, name, value string, expires time.Time) {
	cookie := &http.Cookie{Name: c.prefix() + name, Value: value, Path: "/", HttpOnly: true, Secure: !c.Insecure,
		SameSite: http.SameSiteLaxMode, Expires: expires}
	if value == "" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
}

// Get returns the value of a cookie of a request.
func (c *Cookies) Get(r *http.Request, name string) string {
	cookie, err := r.Cookie(c.prefix() + name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// Keep has the browser keep a login under way.
func (c *Cookies) Keep(w http.ResponseWriter, name, sealed string, now time.Time) {
	c.set(w, name, sealed, now.Add(loginLasts))
}

// Drop has the browser forget a cookie.
func (c *Cookies) Drop(w http.ResponseWriter, name string) { c.set(w, name, "", time.Unix(0, 0)) }

// Start begins the session of a user; ErrTooLarge if no cookie can hold it. The cookie outlives the session, so that one that is
// over can be distinguished from none.
func (c *Cookies) Start(w http.ResponseWriter, user Identity) error {
	user.ID = random()
	sealed, err := c.Sealer.Seal(sessionPurpose, user)
	if err != nil {
		return err
	}
	if len(sealed) > maxCookie {
		return ErrTooLarge
	}
	c.set(w, sessionName, sealed, time.Time{})
	return nil
}

// End ends the session of a browser.
func (c *Cookies) End(w http.ResponseWriter) { c.Drop(w, sessionName) }

// Session returns the user of a request; false if the request is of no session that was begun here. It may be over.
func (c *Cookies) Session(r *http.Request) (Identity, bool) {
	user := Identity{}
	value := c.Get(r, sessionName)
	if value == "" || c.Sealer.Unseal(sessionPurpose, value, &user) != nil {
		return Identity{}, false
	}
	return user, true
}
