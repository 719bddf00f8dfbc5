// Asks for the token, loads the API's description with it, and shows it. The token is kept in this page only, until it is closed.
const form = document.querySelector("form");
const alert = form.querySelector("[role=alert]");

form.addEventListener("submit", (event) => {
  event.preventDefault();
  void load();
});

async function load() {
  alert.textContent = "";
  const token = form.elements.token.value.trim();
  try {
    const response = await fetch("v1/openapi.json", { headers: { authorization: `Bearer ${token}` } });
    const body = await response.json();
    if (response.ok) show(body, token);
    else alert.textContent = body.detail;
  } catch (error) {
    alert.textContent = `The master does not answer: ${error.message}`;
  }
}

function show(description, token) {
  form.hidden = true;
  form.reset();
  // Behind a proxy the API begins below a path that only this page's own address tells.
  const root = new URL("..", location.href).href.replace(/\/$/, "");
  const ui = window.SwaggerUIBundle({
    spec: { ...description, servers: [{ url: root }] },
    dom_id: "#reference",
    presets: [window.SwaggerUIBundle.presets.apis],
    layout: "BaseLayout",
    docExpansion: "list",
    defaultModelsExpandDepth: -1,
    validatorUrl: null,
    onComplete: () => ui.preauthorizeApiKey("token", token),
  });
}
