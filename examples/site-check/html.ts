// What a page says of itself: its title, and where it points to. Pure.
import { Parser } from "htmlparser2";
import type { Link } from "./contracts.ts";

export interface ReadPage {
  title: string;
  /** Each address once, without its fragment. */
  links: Link[];
}

const TEXT_LIMIT = 80;

/** Attributes that hold an address, by element. */
const ADDRESSES: Record<string, string> = {
  a: "href",
  area: "href",
  img: "src",
  link: "href",
  script: "src",
  iframe: "src",
};
/** `<link>` elements that name something to fetch; others (canonical, preconnect) do not have to answer. */
const FETCHED = /\b(stylesheet|icon|manifest|alternate|next|prev)\b/;

export function readPage(html: string, url: string): ReadPage {
  let title = "";
  let inTitle = false;
  let base = url;
  let open: Link | undefined;
  const found = new Map<string, Link>();
  const parser = new Parser({
    onopentag(name, attributes) {
      if (name === "title" && title === "") inTitle = true;
      if (name === "base" && attributes.href) base = addressOf(attributes.href, url) ?? base;
      const attribute = ADDRESSES[name];
      const value = attribute === undefined ? undefined : attributes[attribute];
      if (value === undefined || (name === "link" && !FETCHED.test(attributes.rel ?? ""))) return;
      const address = addressOf(value, base);
      if (address === undefined) return;
      const link = found.get(address) ?? { url: address, text: "" };
      found.set(address, link);
      if (name === "a" && link.text === "") open = link;
    },
    ontext(text) {
      if (inTitle) title += text;
      if (open !== undefined && open.text.length < TEXT_LIMIT) open.text += text;
    },
    onclosetag(name) {
      if (name === "title") inTitle = false;
      if (name === "a") open = undefined;
    },
  });
  parser.end(html);
  const tidy = (text: string) => text.replace(/\s+/g, " ").trim().slice(0, TEXT_LIMIT);
  return {
    title: tidy(title),
    links: [...found.values()].map((link) => ({ ...link, text: tidy(link.text) })),
  };
}

/** The absolute address without its fragment; undefined for what is no web address (`mailto:`, `javascript:`, nonsense). */
export function addressOf(value: string, base: string): string | undefined {
  if (!URL.canParse(value, base)) return undefined;
  const url = new URL(value, base);
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  url.hash = "";
  return url.href;
}
